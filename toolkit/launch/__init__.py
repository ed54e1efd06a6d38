"""From a plan to a job: the script, Slurm's words, staging, submitting and following."""
