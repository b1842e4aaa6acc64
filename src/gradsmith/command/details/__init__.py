"""What the page shows of an operation beside its check."""
