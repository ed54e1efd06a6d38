"""Copy images to another machine, through a registry or in a bundle."""
