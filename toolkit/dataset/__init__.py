"""Download the files of data sets from their sources, and verify the SHA-256 of each file."""
