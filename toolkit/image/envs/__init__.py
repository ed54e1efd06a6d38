"""Make environments. An environment is one file with a user's Python packages; a job mounts this file over an
image, which stays unchanged.
"""
