"""Programs: how the ranks of what a job runs find each other."""
