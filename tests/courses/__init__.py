"""The lessons of ``docs/courses``, run as a reader runs them."""
