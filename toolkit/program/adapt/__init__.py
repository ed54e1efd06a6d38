"""``toolkit adapt``: what a training script needs to run on several ranks, as changes of its text."""
