"""Which custom gradients a test suite exercises, with which inputs, and are they right?

`plugin.py` is what pytest talks to. `recorder.py` keeps what was seen; each framework
tells it of the calls of its own operations.
"""
