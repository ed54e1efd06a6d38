"""Turn a plan into a job: request, site profile, job script, submission and tracking."""
