"""SIF files and the squashfs images in them."""
