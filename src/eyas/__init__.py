"""Train, check, convert and serve speculative-decoding drafters."""

__version__ = "0.1.0"
