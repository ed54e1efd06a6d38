"""The meaning of job output."""
