"""GradBench's problems, ported as a user of each library would write them.

Each module is one problem (https://github.com/gradbench/gradbench says what they are
about):

- `SIZES`: a small and a middle one, as keyword arguments of what follows,
- `VARIABLES`: how many of the inputs are differentiated, the first ones,
- `inputs(rng, **size)`: NumPy arrays,
- `in_numpy(library, **size)`: the function of these inputs that is timed, in NumPy's
  names, for our tape and for autograd; for JAX too, unless there is `in_jax`,
- `in_torch(torch, **size)`: the same for PyTorch.

All of them return the same numbers, derivatives included.
"""

SEED = 31337  # of all inputs
