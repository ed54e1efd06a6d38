"""Record jobs, submit them to Slurm, and query their states."""
