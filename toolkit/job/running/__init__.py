"""Jobs that are submitted: follow, wait for, read, cancel and resume them."""
