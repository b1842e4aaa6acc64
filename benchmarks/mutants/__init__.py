"""A corpus of wrong gradients, and how many of them each checker finds.

>>> from benchmarks.mutants.corpus import controls, corpus
>>> mutant = next(corpus(half="tuned", framework="numpy"))
>>> op, xs = mutant.build(), mutant.inputs("float64", seed=0)
"""
