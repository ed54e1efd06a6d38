"""Record jobs, submit them, and follow their state in Slurm."""
