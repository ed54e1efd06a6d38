"""Check the request for a job, write the job script, submit the job to Slurm, and follow the job."""
