"""Run scaling studies: their runs, measurements and conclusions; and analyse Horovod timelines."""
