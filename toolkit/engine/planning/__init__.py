"""The plan of each launch mode: command words, variables and mounts, with the additions of a site and a host
MPI.
"""
