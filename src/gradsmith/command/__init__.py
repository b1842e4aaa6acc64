"""The command line: find operations, check each in a worker process, show verdicts."""
