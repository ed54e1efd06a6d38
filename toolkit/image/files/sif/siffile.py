"""Find the SIF partition that contains the container's root file system (apptainer/sif:pkg/sif/sif.go)."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import BadInput
from toolkit.image.files.sif.sifobjects import (
    MAGIC,
    PARTITION,
    PRIMARY,
    SQUASHFS,
    SifDescriptor,
    Table,
    read_table,
)

_ARCHITECTURES = {
    "01": "i386",
    "02": "x86_64",
    "03": "arm",
    "04": "aarch64",
    "05": "ppc64",
    "06": "ppc64le",
    "11": "s390x",
    "12": "riscv64",
}


@dataclass(frozen=True, slots=True)
class Sif:
    """A SIF that Apptainer can start.

    ``architecture`` is Linux's name of the architecture, or None if toolkit does not know it. ``root``
    describes the partition that contains the container's root file system.
    """

    architecture: str | None
    root: SifDescriptor
    table: Table


def is_sif(head: bytes) -> bool:
    """Return whether ``head``, the first bytes of a file, is the header of a SIF."""
    return head[32:42] == MAGIC


def read_sif(file: BinaryIO, path: Path) -> Sif:
    """Read and check the descriptor table of a SIF.

    Raises:
        Damaged: if the file is truncated or contains invalid numbers.
        BadInput: if the file is not a SIF, or has no squashfs partition with a root file system.
    """
    table = read_table(file, path)
    root = next((entry for entry in table.used if _is_root(entry)), None)
    if root is None:
        raise BadInput(
            f"{path}: this SIF has no squashfs partition with a root file system; the SIF may be "
            "encrypted, or be an OCI-SIF",
            fix="build the image without encryption, with `apptainer build`",
        )
    code = root.extra[8:10].decode("ascii", "replace")
    return Sif(_ARCHITECTURES.get(code), root, table)


def _is_root(descriptor: SifDescriptor) -> bool:
    return descriptor.kind == PARTITION and struct.unpack_from("<ii", descriptor.extra) == (SQUASHFS, PRIMARY)
