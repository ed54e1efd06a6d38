"""Copy an image to another machine through a registry or as a bundle."""
