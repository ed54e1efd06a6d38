"""A client of an OCI registry (opencontainers/distribution-spec v1.1), over docker's own ``requests``.

The ``oras`` package was looked at and not taken: it reads a whole blob into memory to send it, goes on with
no broken transfer, and holds nothing that it fetched against its digest.
"""
