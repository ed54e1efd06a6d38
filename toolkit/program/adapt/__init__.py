"""``toolkit adapt``: change the text of a training script so that it runs on several ranks."""
