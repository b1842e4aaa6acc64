"""Whatever could make the library wrong, crash or leak, at random and in numbers.

>>> from benchmarks.torture.programs.program import program
>>> print(program(seed=0, number=3).source())  # doctest: +SKIP
"""
