"""What a gradient keeps alive."""
