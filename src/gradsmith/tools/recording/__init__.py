"""Which custom gradients a test suite exercises, with which inputs, and are they right?

`plugin.py` is what pytest talks to, `recorder.py` keeps what was seen, and one module
for each framework sees it. A framework's module is imported once the framework is.
"""
