"""A client of an OCI registry (opencontainers/distribution-spec v1.1), over docker's own ``requests``.

The ``oras`` package was considered and not used: it reads a whole blob into memory to send it, resumes no
interrupted transfer, and checks no download against its digest.
"""
