"""Read images in SIF files, squashfs files, archives and folders, without unpacking them to disk."""
