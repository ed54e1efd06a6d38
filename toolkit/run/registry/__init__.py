"""A client for OCI registries (opencontainers/distribution-spec v1.1). The client uses the library
``requests``, which the Docker SDK needs anyway.

The Python package ``oras`` does not suffice. Before an upload, ``oras`` reads the whole blob into memory.
``oras`` cannot resume a transfer, and does not check the digest of a download.
"""
