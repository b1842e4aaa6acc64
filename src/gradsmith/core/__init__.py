"""The engine: values, rules, the tape and the walk back, forward mode, transforms."""
