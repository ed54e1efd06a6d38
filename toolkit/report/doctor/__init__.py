"""The doctor's page and JSON: the answer, what it rests on, and each launch mode."""
