"""NumPy has no custom gradients of its own: every operation of the engine is ours."""
