"""From an image in the Docker engine to a SIF file."""
