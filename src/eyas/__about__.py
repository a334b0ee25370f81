"""The version of eyas, apart from the library so that every part of it can say so."""

__version__ = "0.1.0"
