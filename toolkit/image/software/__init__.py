"""Find the software in an image: MPIs, PMIx, network libraries, CUDA and Python packages."""
