"""From a lock to an image in the Docker engine, or to a folder to build from."""
