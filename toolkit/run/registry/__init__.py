"""A client of OCI registries (opencontainers/distribution-spec v1.1), based on the library ``requests``,
a dependency of the Docker SDK.

The Python package ``oras`` does not suffice. Before an upload, ``oras`` reads the whole blob into memory.
``oras`` cannot resume a transfer, and does not check the digest of a download.
"""
