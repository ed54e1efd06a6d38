"""``toolkit doctor``: predict how an image runs on a cluster, from facts about the image and the cluster."""
