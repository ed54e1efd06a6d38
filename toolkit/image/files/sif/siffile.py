"""Find the partition of a SIF with the container's root file system (apptainer/sif:pkg/sif/sif.go)."""

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
    """A SIF that Apptainer can start; ``root`` is the partition with the container's root file system."""

    architecture: str | None
    root: SifDescriptor
    table: Table


def is_sif(head: bytes) -> bool:
    """Return whether ``head``, the first bytes of a file, is the header of a SIF."""
    return head[32:42] == MAGIC


def read_sif(file: BinaryIO, path: Path) -> Sif:
    """Read and check the descriptor table of a SIF.

    Raises:
        Damaged: under the same conditions as :func:`~toolkit.image.files.sif.sifobjects.read_table`.
        BadInput: if the SIF has no squashfs partition with a root file system.
    """
    table = read_table(file, path)
    root = next((entry for entry in table.used if _is_root(entry)), None)
    if root is None:
        raise BadInput(
            f"{path}: this SIF has no squashfs partition with a root file system; it may be encrypted, or an "
            "OCI-SIF",
            fix="build the image without encryption, with `apptainer build`",
        )
    code = root.extra[8:10].decode("ascii", "replace")
    return Sif(_ARCHITECTURES.get(code), root, table)


def _is_root(descriptor: SifDescriptor) -> bool:
    return descriptor.kind == PARTITION and struct.unpack_from("<ii", descriptor.extra) == (SQUASHFS, PRIMARY)
