"""Write job scripts with the launch command, the checks and the wrapper programs."""
