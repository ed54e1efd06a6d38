"""Compare the releases in recipes/knowledge with the newest releases in the package index."""
