"""TensorFlow, part by part, as `frameworks/_protocol.py` describes them."""
