"""A client of OCI registries (opencontainers/distribution-spec v1.1), based on ``requests``, which the docker
SDK installs.

The ``oras`` package does not suffice. ``oras`` reads a whole blob into memory to send it, cannot resume a
transfer, and does not check the digest of a download.
"""
