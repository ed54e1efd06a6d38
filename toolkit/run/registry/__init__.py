"""A client of OCI registries (opencontainers/distribution-spec v1.1), over the docker SDK's ``requests``.

The ``oras`` package does not suffice: it reads a whole blob into memory to send it, resumes no interrupted
transfer, and checks no download against its digest.
"""
