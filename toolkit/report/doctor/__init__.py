"""Format the result of ``toolkit doctor`` as a page or as JSON."""
