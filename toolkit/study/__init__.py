"""Plan and evaluate scaling studies, and analyse Horovod timelines."""
