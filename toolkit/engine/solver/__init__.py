"""Choose the component versions of a stack, and give the reason for each version."""
