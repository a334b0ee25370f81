"""Asking an installed engine itself what it makes of a drafter."""
