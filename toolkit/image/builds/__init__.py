"""Build an image from a lock file with Docker, or write a folder for a build on another machine."""
