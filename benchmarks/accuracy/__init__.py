"""How many digits are right: the engine's functions, and the frameworks' own."""
