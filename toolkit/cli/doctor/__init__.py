"""``toolkit doctor``: compare an image with a cluster, and predict how it will run there."""
