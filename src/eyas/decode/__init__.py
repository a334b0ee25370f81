"""Draft, verify, accept: exact decoding with a drafter, and what was accepted."""
