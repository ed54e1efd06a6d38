"""Build an image from its lock in the Docker engine, or write a folder from which another machine builds
it."""
