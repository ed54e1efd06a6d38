"""Packages of Debian and wheels of Python, for images and for machines without a network."""
