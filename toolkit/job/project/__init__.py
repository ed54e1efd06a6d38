"""The folder of the user's code: find its files, check the program, and pack the files for the cluster."""
