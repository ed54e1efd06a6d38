"""Match a job to the partitions of its site; draft and check site profiles."""
