"""Follow, wait for, read, cancel and resume submitted jobs."""
