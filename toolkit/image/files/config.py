"""Read the settings of an image: its OCI configuration, or the scripts that Apptainer stores in a SIF."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, Damaged
from toolkit.image.files import tree as files
from toolkit.image.files.tree import FileTree

RUNSCRIPT = "/.singularity.d/runscript"
BEGINNING = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH that Apptainer sets for an image without a PATH (apptainer:internal/pkg/util/env)."""
_MOST = 1 << 16
_ARCHITECTURES = {"amd64": "x86_64", "386": "i386", "arm64": "aarch64"}
"""Go's name of an architecture (GOARCH) → Linux's name. OCI configurations use Go's names."""


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """The configuration of an image.

    ``architecture`` is Linux's name of the architecture, such as ``x86_64``. ``origin`` names the source of
    the configuration in the evidence that toolkit prints, for example "the image's configuration".
    """

    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    architecture: str | None = None
    origin: str = ""


class _Process(msgspec.Struct, frozen=True):
    Env: list[str] | None = None
    Entrypoint: list[str] | str | None = None
    Cmd: list[str] | str | None = None
    Labels: dict[str, str | None] | None = None


class _RootFs(msgspec.Struct, frozen=True):
    diff_ids: list[str] | None = None


class _StoredConfig(msgspec.Struct, frozen=True):
    architecture: str = ""
    os: str = "linux"
    config: _Process | None = None
    rootfs: _RootFs | None = None


def read_config(content: bytes, name: str) -> tuple[ImageConfig, tuple[str, ...]]:
    """Return an image's configuration (opencontainers/image-spec:config.md) and the digests of its unpacked
    layers (``diff_ids``).

    Args:
        content: the configuration, a JSON file.
        name: the image's name in error messages.

    Raises:
        Damaged: if the configuration is not valid JSON, or a field has the wrong type.
        BadInput: if the image is not for Linux.
    """
    try:
        stored = msgspec.json.decode(content, type=_StoredConfig)
    except DECODE_ERRORS as error:
        raise Damaged(
            f"{name}: the configuration of the image cannot be read: {error}",
            fix="copy or save the image again",
        ) from error
    if stored.os not in {"", "linux"}:
        raise BadInput(f"{name}: this is an image for {stored.os[:40]!r}, not for Linux")
    process = stored.config or _Process()
    pairs = (line.partition("=") for line in process.Env or ())
    config = ImageConfig(
        env={key: value for key, _, value in pairs if key},
        labels={key: value or "" for key, value in (process.Labels or {}).items()},
        entrypoint=_words(process.Entrypoint),
        command=_words(process.Cmd),
        architecture=architecture(stored.architecture) or None,
        origin="the image's configuration",
    )
    return config, tuple((stored.rootfs and stored.rootfs.diff_ids) or ())


def architecture(goarch: str) -> str:
    """Return Linux's name of an architecture, for example ``x86_64`` for Go's name ``amd64``."""
    return _ARCHITECTURES.get(goarch, goarch)


def _words(value: list[str] | str | None) -> tuple[str, ...]:
    # Old Docker images store the command as one string, which Docker runs in a shell.
    return ("/bin/sh", "-c", value) if isinstance(value, str) else tuple(value or ())


def started_command(tree: FileTree, config: ImageConfig | None) -> tuple[tuple[str, ...] | None, str]:
    """Return the command that ``apptainer run`` starts, and where toolkit read the command. If the command is
    unknown, return None and the reason.

    If the image has an OCI configuration, the command consists of the ``Entrypoint`` and the ``Cmd`` in it.
    If ``config`` is None, toolkit reads Apptainer's runscript in the image. If Apptainer converted the image
    from an OCI image, the runscript contains the entrypoint and the command
    (apptainer:internal/pkg/build/sources/conveyorPacker_oci.go). For any other image, the runscript itself is
    the command.
    """
    if config is not None:
        return (*config.entrypoint, *config.command), f"{config.origin}: Entrypoint and Cmd"
    script = files.text(tree, RUNSCRIPT, _MOST)
    if script is None:
        return None, f"{RUNSCRIPT}: not in the image"
    values = dict(re.findall(r"^(OCI_ENTRYPOINT|OCI_CMD)='(.*)'$", script, re.MULTILINE))
    if not values:
        return (RUNSCRIPT,), RUNSCRIPT
    try:
        words = [w for name in ("OCI_ENTRYPOINT", "OCI_CMD") for w in shlex.split(values.get(name, ""))]
    except ValueError:
        return (RUNSCRIPT,), RUNSCRIPT
    return tuple(words), f"{RUNSCRIPT}: OCI_ENTRYPOINT and OCI_CMD"


def settings(config: ImageConfig | None, scripts: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a program in the image.

    ``scripts`` are the variables that Apptainer's scripts in the image set; they override the variables of
    ``config``. The PATH in ``scripts`` may end with Apptainer's default PATH. In this case, the PATH of
    ``config``, if any, replaces the default.
    """
    if config is None:
        return dict(scripts)
    values = {**config.env, **scripts}
    own = config.env.get("PATH")
    if own and values["PATH"].endswith(BEGINNING):
        values["PATH"] = values["PATH"].removesuffix(BEGINNING) + own
    return values
