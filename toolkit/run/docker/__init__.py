"""The Docker engine: base images, builds, images, and containers."""
