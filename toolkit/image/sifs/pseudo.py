"""Write a pseudo file for ``mksquashfs -pf``.

A pseudo file lists files that mksquashfs adds to a squashfs.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_START = b"#\n# START OF DATA - DO NOT MODIFY\n#\n"


@dataclass(frozen=True, slots=True)
class Node:
    """A folder, a file with ``content``, or a link to ``target``; the owner is root.

    ``path`` is relative to the root of the squashfs, without a leading slash.
    """

    path: str
    mode: int
    content: bytes | None = None
    target: str = ""


def pseudo_file(nodes: Iterable[Node], epoch: int) -> bytes:
    """Return a pseudo file: a line for each node, then the content of all files.

    ``epoch`` is the modification time of all nodes in Unix seconds.
    """
    lines, data = [], bytearray()
    for node in nodes:
        name, common = _escaped(node.path), f"{epoch} {node.mode:o} 0 0"
        if node.target:
            lines.append(f"{name} S {common} {node.target}")
        elif node.content is None:
            lines.append(f"{name} D {common}")
        else:
            lines.append(f"{name} R {common} {len(node.content)} {len(data)} 0")
            data += node.content
    return "".join(f"{line}\n" for line in lines).encode() + _START + bytes(data)


def _escaped(path: str) -> str:
    """Return ``path`` with a backslash before white space, ``"`` and ``\\`` (squashfs-tools: pseudo.c)."""
    return re.sub(r'([\s\\"])', r"\\\1", path)
