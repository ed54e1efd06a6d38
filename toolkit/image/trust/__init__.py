"""Sign images, check signatures, write SBOMs, and compare an image with its lock."""
