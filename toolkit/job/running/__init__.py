"""Follow, cancel and resume submitted jobs, wait for them, and read their output."""
