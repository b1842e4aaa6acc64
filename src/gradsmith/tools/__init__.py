"""What looks at operations and functions from outside, one package each."""
