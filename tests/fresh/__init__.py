"""Compare the releases in recipes/knowledge with the releases in the package index."""
