"""What a job asks for: values, files, variables, trainers, and how they join."""
