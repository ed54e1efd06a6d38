"""The virtual cluster: Slurm on containers, one for each node, which runs on a laptop."""
