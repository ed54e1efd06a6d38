"""Access to the Docker engine: base images, builds, images and containers."""
