"""``toolkit doctor``: predict how an image runs on a cluster, from the facts of both."""
