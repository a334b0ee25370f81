"""Conversations to token ids, and the target's own answers to them."""
