"""Job records, submission of jobs, and the state of jobs in Slurm."""
