"""From a plan to a job: requests, site profiles, job scripts, submission and tracking."""
