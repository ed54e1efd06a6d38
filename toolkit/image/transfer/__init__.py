"""Registries and bundles: copy an image to another machine."""
