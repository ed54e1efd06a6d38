"""Read ``/etc/ld.so.cache``, ldconfig's index of libraries (glibc:sysdeps/generic/dl-cache.h)."""

import struct

_MAGIC = b"glibc-ld.so.cache1.1"
_HEAD = struct.Struct("<20sII")
_HEAD_SIZE = 48
_ENTRY = struct.Struct("<iIIIQ")
_MOST = 50_000
_LONGEST = 4096
_ABI = {"x86_64": 0x0300, "i386": 0x0000, "aarch64": 0x0A00, "ppc64le": 0x0500, "s390x": 0x0400}
"""For each architecture, the flag of its libraries in the index. One index may list libraries for both i386
and x86-64.
"""


def read_cache(content: bytes, architecture: str | None = None) -> dict[str, str] | None:
    """Return the path of each library in the index, by soname (such as ``libmpi.so.40``); None if the index
    is invalid.

    If ``architecture`` is known, the result has only the libraries for this architecture. If the index has
    several builds of a library, the result has the build that runs on every CPU of the architecture. ld.so
    itself may prefer a build for newer CPUs (glibc-hwcaps).
    """
    start = content.find(_MAGIC)
    if start < 0 or start + _HEAD_SIZE > len(content):
        return None
    _, count, _ = _HEAD.unpack_from(content, start)
    libraries: dict[str, str] = {}
    special: dict[str, str] = {}
    for number in range(min(count, _MOST)):
        at = start + _HEAD_SIZE + number * _ENTRY.size
        if at + _ENTRY.size > len(content):
            break
        flags, key, value, _, capabilities = _ENTRY.unpack_from(content, at)
        if flags & 0xFF00 != _ABI.get(architecture or "", flags & 0xFF00):
            continue
        soname, path = _text(content, start + key), _text(content, start + value)
        if soname and path.startswith("/"):
            (special if capabilities else libraries).setdefault(soname, path)
    return {**special, **libraries}


def _text(content: bytes, offset: int) -> str:
    text = content[offset : offset + _LONGEST].partition(b"\0")[0].decode("utf-8", "replace")
    return text if text.isprintable() else ""
