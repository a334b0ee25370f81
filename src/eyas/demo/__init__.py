"""The story of the project, run for real."""
