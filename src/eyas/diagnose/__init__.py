"""Where a drafter's acceptance was lost, by running it as trained and as served."""
