"""Find the software in an image: MPI, PMIx, network libraries, CUDA and Python packages."""
