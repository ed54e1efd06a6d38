"""``toolkit adapt``: the changes of a training script's text for several ranks."""
