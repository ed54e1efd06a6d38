"""File names and sonames of shared libraries, with and without the hash that auditwheel adds. A soname is the
name by which the loader finds a library. auditwheel copies libraries into Python wheels.
"""

import re

_HASH = re.compile(r"-[0-9a-f]{8}(?=\.so(?:\.|\Z))")
_NUMBERS = re.compile(r"(\.so\.\d+)[.\d]*\Z")


def without_hash(name: str) -> str:
    """Return the file name of a library without the hash that auditwheel adds.

    For example, auditwheel renames ``libpmix.so.2.13.7`` to ``libpmix-1a2b3c4d.so.2.13.7``
    (pypa/auditwheel:src/auditwheel/repair.py).
    """
    return _HASH.sub("", name)


def plain(soname: str) -> str:
    """Return the original soname of a library whose soname auditwheel changed: ``libpmix.so.2`` for
    ``libpmix-1a2b3c4d.so.2.13.7``.

    auditwheel replaces a library's soname with its new file name, which contains the hash and the full
    version. If ``soname`` has no hash from auditwheel, the function returns ``soname`` unchanged.
    """
    name = without_hash(soname)
    return name if name == soname else _NUMBERS.sub(r"\1", name)
