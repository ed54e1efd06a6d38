"""Signatures, bills of materials and the comparison of an image with its lock."""
