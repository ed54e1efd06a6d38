"""Files that mksquashfs adds to a file system although they are on no disk (``mksquashfs -pf``)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_START = b"#\n# START OF DATA - DO NOT MODIFY\n#\n"


@dataclass(frozen=True, slots=True)
class Node:
    """A folder; a file if it has ``content``; a link if it has a ``target``. Root owns all entries.

    ``path`` is below the root and has no leading slash.
    """

    path: str
    mode: int
    content: bytes | None = None
    target: str = ""


def pseudo_file(nodes: Iterable[Node], epoch: int) -> bytes:
    """Return the definitions followed by the content that they point to."""
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
    """Escape characters that end a name (squashfs-tools: pseudo.c)."""
    return re.sub(r'([\s\\"])', r"\\\1", path)
