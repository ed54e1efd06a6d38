"""From a recipe to a lock: which files an image is made from, and in which steps."""
