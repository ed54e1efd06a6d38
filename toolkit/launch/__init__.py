"""Turn the plan of a launch into a job: check the request, write the job script, and submit and follow the
job."""
