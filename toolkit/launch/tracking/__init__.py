"""Records of jobs, their submission, and their state in Slurm."""
