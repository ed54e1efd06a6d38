"""Commands about scripts of the user."""
