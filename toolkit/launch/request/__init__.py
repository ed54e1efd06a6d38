"""The contents of a job request: values, files, variables and trainers, and how toolkit merges them."""
