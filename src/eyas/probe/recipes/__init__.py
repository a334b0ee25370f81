"""How each engine is installed: one file an engine."""
