"""Build an image from its lock in the Docker engine, or write a folder to build it from."""
