"""The virtual cluster: Slurm on containers, one a node, that anybody can have on a laptop."""
