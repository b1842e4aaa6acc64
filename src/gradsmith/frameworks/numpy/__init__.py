"""NumPy's arrays and the tensors of the embedded engine."""
