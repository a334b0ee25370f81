"""Draft vocabulary, test-time-training loss, the loop, export."""
