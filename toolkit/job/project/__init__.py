"""The folder of the user's code: which files go with a job, and how they travel."""
