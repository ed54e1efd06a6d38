"""Find and install Debian packages and Python packages, for images and for machines without a network."""
