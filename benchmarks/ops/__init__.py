"""The operations of `gradsmith.ops` beside what each framework has of its own."""
