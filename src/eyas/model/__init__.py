"""The target with its captured boundaries, and the drafter as one plain module."""
