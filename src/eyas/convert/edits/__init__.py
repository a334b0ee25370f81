"""Changes to a drafter's material that leave what it computes as it is, or say what they change."""
