"""Read an image as it is stored: SIF, squashfs, layers, archives, folders; nothing is unpacked on disk."""
