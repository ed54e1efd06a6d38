"""Get the base image of a Debian release: pull the image by its digest, or build it with mmdebstrap."""

import contextlib
import dataclasses
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.model.progress import Tell
from toolkit.run import clone
from toolkit.run.command import Command
from toolkit.run.docker.engine import connect, find_image
from toolkit.run.docker.engine_errors import translate_errors
from toolkit.run.docker.mirrors import MIRROR
from toolkit.run.folders import in_cache, make_writable
from toolkit.run.local import LocalRunner
from toolkit.run.web.http import without_login
from toolkit.units import format_size

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_REGISTRY_SECONDS = 6
_BOOTSTRAP_SECONDS = 900
_TRUSTED = Path("/etc/apt/trusted.gpg.d")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TESTING = frozenset({"forky", "duke", "sid"})
"""Debian releases that change daily. Debian's package index of these releases is valid for only one week."""
ACCEPT_OLD_INDEX = ('--aptopt=Acquire::Check-Valid-Until "false"',)
"""The option that lets apt accept an outdated package index. apt still checks the signature of the index.

The apt configuration of the base image keeps this option.
"""
_EXPIRED = re.compile(r"Release file for \S+ is expired \(invalid since [^)]{1,60}\)")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")


@dataclass(frozen=True, slots=True)
class BaseImage:
    """A base image. ``reference`` is the name of the image in a Dockerfile's ``FROM``. ``published`` is true
    if the image comes from a registry. In this case, ``digest`` is the registry's digest. If toolkit built
    the image with mmdebstrap, ``digest`` is the image's ID.
    """

    reference: str
    digest: str
    published: bool

    def __str__(self) -> str:
        origin = "published" if self.published else "bootstrapped with mmdebstrap"
        return f"{self.reference.partition('@')[0]}@{self.digest} ({origin})"


def local_name(release: str) -> str:
    """Return the name of a release's base image in the Docker engine."""
    return f"toolkit-base:{release}"


def ensure_base(
    client: "DockerClient", release: str, published: str, tell: Tell, *, fresh: bool = False
) -> BaseImage:
    """Return the base image of a Debian ``release``. If the Docker engine does not have the image, pull or
    build it.

    toolkit prefers the base image that the Docker engine already has, so that later builds use the same base
    image. If ``fresh`` is true, toolkit asks the registry first. ``published`` is the image's reference in
    the registry.

    Raises:
        Missing: if the registry does not provide the image and mmdebstrap is not installed.
    """
    if not re.fullmatch(r"[a-z][a-z0-9.-]*", release):
        raise BadInput(f"{release!r} is not a Debian release; expected a codename such as `bookworm`")
    name = local_name(release)
    if not fresh and (existing := find_image(client, name)):
        return _describe(existing, name, published)
    if (pulled := _pull(client, published, tell)) is not None:
        with translate_errors(f"tagging {name}"):
            pulled.tag(name)
        clone.record_image(str(pulled.id), name)
        return _describe(pulled, name, published)
    if existing := find_image(client, name):
        return _describe(existing, name, published)
    tell.step(f"The registry does not provide the base image: building {name} with mmdebstrap")
    return _describe(_bootstrap(client, release, name, tell), name, published)


def pull_digest(client: "DockerClient", reference: str, tell: Tell) -> None:
    """Pull an image by its digest.

    Raises:
        Missing: if the registry does not send the image.
    """
    import docker
    import requests

    tell.step(f"Pulling {reference}")
    try:
        client.images.pull(reference)
    except (docker.errors.APIError, requests.exceptions.RequestException) as error:
        raise Missing(
            f"{reference}, the base image that the lock names, cannot be pulled: {error}",
            fix=(
                "pull the image once on a network with access to the registry, or lock "
                "the recipe again: `toolkit image lock "
                "RECIPE --upgrade`"
            ),
        ) from error


def _describe(image: "Image", name: str, published: str) -> BaseImage:
    repository = published.partition(":")[0]
    for reference in image.attrs.get("RepoDigests") or ():
        # Accept only a digest in the repository of ``published``. If a user pushes an image from mmdebstrap
        # to a registry, the image gets a digest in another repository.
        if reference.partition("@")[0] == repository:
            return BaseImage(reference, reference.partition("@")[2], published=True)
    return BaseImage(name, image.id, published=False)


def _pull(client: "DockerClient", reference: str, tell: Tell) -> "Image | None":
    """Pull an image by the digest that the registry reports. Return ``None`` if the registry does not provide
    the image.
    """
    import docker
    import requests

    tell.step(f"Asking the registry for {reference}")
    # Use a short timeout, so that an unreachable registry does not delay the build by a minute.
    asking = connect(timeout=_REGISTRY_SECONDS)
    try:
        digest = asking.images.get_registry_data(reference).id
    except (docker.errors.APIError, requests.exceptions.RequestException) as error:
        tell.step(f"The registry does not provide {reference}: {_registry_message(error)}")
        return None
    finally:
        asking.close()
    tell.step(f"Pulling {reference} by its digest {digest}")
    repository = reference.partition(":")[0]
    with translate_errors(f"pulling {reference}"):
        return client.images.pull(f"{repository}@{digest}")


def _registry_message(error: Exception) -> str:
    """Return the registry's message, which the Docker engine's error contains. If the error has no message,
    return "no answer in time".
    """
    words = str(getattr(error, "explanation", None) or "").split()
    return " ".join(words)[:300] or "no answer in time"


def _bootstrap(client: "DockerClient", release: str, name: str, tell: Tell) -> "Image":
    chosen = os.environ.get("TMPDIR")
    folder = make_writable(Path(chosen), "TMPDIR") if chosen else in_cache()
    with tempfile.TemporaryDirectory(prefix="toolkit-base.", dir=folder) as work:
        Path(work).chmod(0o755)  # mmdebstrap runs in a user namespace as another user
        tar = Path(work) / "base.tar"
        _mmdebstrap(release, tar, tell)
        tell.step(f"Importing {name} into the Docker engine ({format_size(tar.stat().st_size)})")
        with translate_errors(f"importing {name}"):
            client.api.import_image_from_file(
                str(tar), *name.split(":"), changes=['CMD ["/bin/sh"]', 'LABEL toolkit="base"']
            )
    image = find_image(client, name)
    if image is None:
        raise CheckFailed(
            f"the Docker engine imported the image {name}, but does not list it", fix="run the command again"
        )
    clone.record_image(str(image.id), name)
    return image


def _mmdebstrap(release: str, tar: Path, tell: Tell) -> None:
    excluded = [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]
    where = os.environ.get(MIRROR, "").strip()
    # Pass a mirror's password on standard input, because other users can see the arguments of a process.
    hidden = where != without_login(where)
    mirror = ["-"] if hidden else [where] if where else []
    # Keep the copyright files, because a redistributed image must contain them.
    keep_licences = "--dpkgopt=path-include=/usr/share/doc/*/copyright"
    dated = ACCEPT_OLD_INDEX if release in TESTING else ()
    words = ("mmdebstrap", "--variant=minbase", *dated, *excluded, keep_licences, release, str(tar), *mirror)
    stdin = _source(where, release).encode() if hidden else None
    command = Command(words, stdin=stdin, timeout=_BOOTSTRAP_SECONDS)
    try:
        done = LocalRunner().stream(command, lambda line: tell.detail(without_login(line)))
    except Missing as error:
        raise Missing(
            f"the registry does not provide the base image of Debian {release}, and mmdebstrap, which can "
            "build the image, is not installed",
            fix=(
                "`sudo apt-get install mmdebstrap` (Debian or Ubuntu), or pull the base image once on a "
                "network where the registry answers"
            ),
        ) from error
    errors = without_login(
        done.errors.strip() or done.text
    ).encode()  # mmdebstrap prints the mirror's address with its password
    done = dataclasses.replace(done, stderr=errors)
    done.require(f"bootstrapping Debian {release}", _advice(errors.decode("utf-8", "replace")))
    with contextlib.suppress(OSError):
        tar.chmod(0o644)


def _advice(errors: str) -> str:
    """Return the fix that toolkit shows if mmdebstrap fails. ``errors`` is the output of mmdebstrap,
    which contains the error messages.
    """
    setting = f"set {MIRROR}=URL"
    if expired := _EXPIRED.search(errors):
        return f"the mirror is out of date ({expired[0]}): {setting}, where URL is an up-to-date mirror"
    return f"to use another package mirror, {setting}"


def _source(mirror: str, release: str) -> str:
    """Return the line of ``sources.list`` that mmdebstrap would write for this mirror.

    The line names a keyring only if apt does not trust Debian's keys by default, for example on Ubuntu.
    """
    trusted = any(_TRUSTED.glob("debian-archive-*"))
    signed = "" if trusted or not _KEYRING.exists() else f' [signed-by="{_KEYRING}"]'
    return f"deb{signed} {mirror} {release} main\n"
