"""Write job scripts: the launch command, the checks and the wrapper programs."""
