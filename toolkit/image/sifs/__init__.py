"""Convert an image of the Docker engine to a SIF."""
