"""Scaling studies: what is run, what was measured, what it says; and timelines of Horovod."""
