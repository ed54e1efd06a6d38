"""Debian packages and Python wheels, for images and for machines without a network."""
