"""Random NumPy programs: their gradients against differences and against JAX."""
