"""Names of shared libraries as programs ask for them, and names that a wheel has changed."""

import re

_HASH = re.compile(r"-[0-9a-f]{8}(?=\.so(?:\.|\Z))")
_NUMBERS = re.compile(r"(\.so\.\d+)[.\d]*\Z")


def without_hash(name: str) -> str:
    """Return a file name as it was before auditwheel put a hash into it.

    ``libpmix-1a2b3c4d.so.2.13.7`` was ``libpmix.so.2.13.7`` (pypa/auditwheel:src/auditwheel/repair.py).
    """
    return _HASH.sub("", name)


def plain(soname: str) -> str:
    """Return the soname that a library had before auditwheel: ``libpmix.so.2`` of the same.

    For auditwheel's name it is the file's name with all numbers; other names are returned unchanged.
    """
    name = without_hash(soname)
    return name if name == soname else _NUMBERS.sub(r"\1", name)
