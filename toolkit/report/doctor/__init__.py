"""The doctor's page and JSON: the answer, its reasons, and each launch mode."""
