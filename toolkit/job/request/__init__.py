"""Read what the user requests for a job: options, settings, signature keys, images and data."""
