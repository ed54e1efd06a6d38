"""Read SIF files, squashfs files, layers, archives and folders of images, without unpacking them to disk."""
