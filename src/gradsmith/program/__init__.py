"""A definition as a graph: tracing, passes, printing, and the code made of it."""
