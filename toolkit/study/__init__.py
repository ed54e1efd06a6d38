"""Scaling studies: their runs, their measurements, their conclusions; and timelines of Horovod."""
