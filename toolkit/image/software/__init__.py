"""The software in an image: MPI, PMIx, fabrics, CUDA, Python packages."""
