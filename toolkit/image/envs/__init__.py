"""Make environments. An environment is one file with a user's Python packages. A job mounts this file over an
image, and the image file stays unchanged.
"""
