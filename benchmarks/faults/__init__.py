"""A corpus of damaged drafters: good checkpoints, or their launch, broken in known ways.

The planter edits files and launch options only. It knows nothing of how eyas reads or diagnoses
them: nothing of eyas is imported here.
"""
