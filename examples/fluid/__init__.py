"""Steer a dye to a picture, through a thousand steps of a fluid.

python -m examples.fluid                    # the embedded engine: under two minutes
python -m examples.fluid --framework jax    # the same file on JAX's arrays
"""
