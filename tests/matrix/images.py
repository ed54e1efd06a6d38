"""Read the descriptions of the matrix's images, and make a Dockerfile for each image."""

import shlex
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

_HERE = Path(__file__).parent
SPECS = _HERE / "images.toml"
PROGRAMS = _HERE / "programs.toml"
PROGRAM = _HERE / "probe.c"
SCRIPT = _HERE / "probe.py"
Debian = Literal["bullseye", "bookworm", "trixie"]
Ubuntu = Literal["xenial", "bionic", "focal", "jammy", "noble", "questing", "resolute"]
UBUNTU = frozenset(get_args(Ubuntu))
LABEL = 'toolkit="matrix"'
"""Docker label of the compile stages, so that you can remove them without the final images."""

FETCH = """#!/bin/sh
# fetch_source PACKAGE: unpack the sources that Debian publishes for it and print where they are
set -eu
mirror=$(sed -nE 's/^deb( +\\[[^]]*\\])? +(https?:[^ ]+) ([^ ]+) .*/\\2 \\3/p' /etc/apt/sources.list \
    | head -n 1)
echo "deb-src $mirror main" > /etc/apt/sources.list.d/source.list
apt-get update > /dev/null
mkdir -p /src && cd /src
apt-get source --download-only "$1" > /dev/null
mkdir "$1" && tar -xf "$1"_*.orig.tar.* -C "$1" --strip-components=1
echo "/src/$1"
"""


_BUILD = (
    "RUN if [ -s /tmp/certificates.crt ]; then export PIP_CERT=/tmp/certificates.crt; fi; "
    "install -m 0755 /tmp/fetch_source /usr/local/bin/fetch_source; mkdir -p /opt; sh /tmp/build.sh"
)
_UPGRADE = (
    "RUN set -eu; mirror=$(sed -nE 's/^deb( +\\[[^]]*\\])? +(https?:[^ ]+) .*/\\2/p' "
    '/etc/apt/sources.list | head -n 1); echo "deb [check-valid-until=no] $mirror {suite} main" '
    "> /etc/apt/sources.list; apt-get update; apt-get dist-upgrade -y --no-install-recommends; "
    "rm -rf /var/lib/apt/lists/* /var/cache/apt/*"
)
"""Dockerfile step that upgrades all packages to ``suite``, even if the suite's Release file has expired."""


class ImageSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Description of one image, a row of ``images.toml``; comments in that file explain the keys."""

    name: str
    release: Debian | Ubuntu
    compression: Literal["gzip", "zstd", "lz4", "xz"]
    compile: str = ""
    suite: str = ""
    tools: tuple[str, ...] = ()
    build: str = ""
    packages: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    after: str = ""
    held_out: bool = False
    central: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    image: tuple[ImageSpec, ...]


@cache
def specs() -> dict[str, ImageSpec]:
    return _read(SPECS)


@cache
def program_specs() -> dict[str, ImageSpec]:
    """Return the images of ``programs.toml`` by name; their programs need no MPI."""
    return _read(PROGRAMS)


def _read(path: Path) -> dict[str, ImageSpec]:
    return {spec.name: spec for spec in msgspec.toml.decode(path.read_bytes(), type=_File).image}


def context(spec: ImageSpec, base: str, certificates: bytes) -> dict[str, bytes]:
    script = f"set -eux\nexport PATH=/usr/local/bin:$PATH\n{_expanded(spec.build)}\n"
    return {
        "Dockerfile": dockerfile(spec, base).encode(),
        "build.sh": script.encode(),
        "fetch_source": FETCH.encode(),
        "probe.c": PROGRAM.read_bytes(),
        **({"probe.py": SCRIPT.read_bytes()} if _runs_python(spec) else {}),
        "certificates.crt": certificates,
    }


def _runs_python(spec: ImageSpec) -> bool:
    return "/tmp/probe.py" in spec.build


def dockerfile(spec: ImageSpec, base: str) -> str:
    start = [f"FROM {base}", "ARG DEBIAN_FRONTEND=noninteractive", *_upgrade(spec.suite)]
    programs = "probe.c probe.py" if _runs_python(spec) else "probe.c"
    lines = [
        f"{start[0]} AS build",
        f"LABEL {LABEL}",
        *start[1:],
        # All images of a Debian release have this step, so the Docker engine caches it.
        _install(("gcc", "libc6-dev", "ca-certificates", "python3-venv")),
        *([_install(spec.tools)] if spec.tools else []),
        "ARG PIP_INDEX_URL",
        "ARG PIP_EXTRA_INDEX_URL",
        "ARG PIP_TRUSTED_HOST",
        "ARG PIP_DEFAULT_TIMEOUT",
        "ARG PIP_RETRIES",
        "ARG PIP_FIND_LINKS",
        f"COPY certificates.crt fetch_source build.sh {programs} /tmp/",
        _BUILD,
        *([f"RUN {_compiled(spec.compile)} && rm -rf /opt/*/share/doc"] if spec.compile else []),
        *start,
        *([_install(spec.packages)] if spec.packages else []),
        "COPY --from=build /opt/ /opt/",
        *([f"RUN {spec.after}"] if spec.after else []),
        *(f"ENV {name}={shlex.quote(value)}" for name, value in spec.environment.items()),
    ]
    return "\n".join(lines) + "\n"


def _compiled(command: str) -> str:
    """Return a compile command with the libraries after the program's source: the linker needs this order."""
    words = command.split()
    libraries = [word for word in words if ".so" in word]
    driver = [word for word in words if word not in libraries]
    return " ".join([*driver, "-O2", "-o", "/opt/probe", "/tmp/probe.c", *libraries])


def _expanded(script: str) -> str:
    return "\n".join(
        f'source=$({line})\ncd "$source"' if line.startswith("fetch_source ") else line
        for line in script.splitlines()
    )


def _install(packages: tuple[str, ...]) -> str:
    names = " ".join(packages)
    return (
        f"RUN apt-get update && apt-get install -y --no-install-recommends {names} "
        "&& rm -rf /var/lib/apt/lists/* /var/cache/apt/*"
    )


def _upgrade(suite: str) -> list[str]:
    return [_UPGRADE.replace("{suite}", suite)] if suite else []
