"""Check, convert, train, run and measure speculative-decoding drafters."""

__version__ = "0.1.0"
