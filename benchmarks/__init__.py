"""Speed and memory beside the installed peers: `python -m benchmarks --help`.

One file per benchmark, each with a function `run(options)` that returns a `Report`.
"""
