"""Choose the versions of a stack, and say why."""
