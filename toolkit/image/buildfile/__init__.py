"""Dockerfiles and Apptainer definition files: what their text says about the image that they make."""
