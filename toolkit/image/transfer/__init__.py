"""Registries and bundles: take an image to another machine."""
