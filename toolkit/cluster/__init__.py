"""Run a virtual cluster: Slurm in containers on one machine, with one container for each node."""
