"""Environments: a user's Python packages in one file, mounted over an unchanged image."""
