"""The plan of each launch mode: words, variables and mounts, with what a site and a host MPI add."""
