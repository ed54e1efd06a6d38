"""``toolkit doctor``: predict from the facts of an image and a cluster how the image runs there."""
