"""Make environments: each is one file with a user's Python packages, which a job mounts over an unchanged
image.
"""
