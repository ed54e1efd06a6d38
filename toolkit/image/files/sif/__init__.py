"""Read and write SIF files and the squashfs images inside SIF files."""
