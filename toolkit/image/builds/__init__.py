"""Build an image in the Docker engine from a lock, or write a folder from which another machine builds the
image."""
