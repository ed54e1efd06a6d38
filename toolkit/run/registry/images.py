"""Read and write manifests in a registry, and check whether a blob exists."""

from toolkit.errors import CheckFailed, Missing
from toolkit.run.registry.answers import unreachable_error
from toolkit.run.registry.manifest import (
    DOCKER_LIST,
    DOCKER_MANIFEST,
    MOST_BYTES,
    OCI_INDEX,
    OCI_MANIFEST,
    ImageManifest,
    digest_of,
    read_manifest,
)
from toolkit.run.registry.name import RegistryName
from toolkit.run.registry.session import TRIES, RegistrySession
from toolkit.run.web.http import pause_before
from toolkit.run.web.limits import broken_limit

_ACCEPT = f"{OCI_MANIFEST}, {OCI_INDEX}, {DOCKER_MANIFEST}, {DOCKER_LIST}"


def scope(repository: str, actions: str) -> str:
    """Return the scope of a token that permits ``actions`` in a repository (distribution: "Token Scope
    Documentation").
    """
    return f"repository:{repository}:{actions}"


def fetch_manifest(
    session: RegistrySession, name: RegistryName, reference: str
) -> tuple[bytes, ImageManifest]:
    """Download a manifest, and return its bytes and the parsed manifest. ``reference`` is a tag or a digest.

    Raises:
        Missing: if the image does not exist, or every transfer is interrupted.
        CheckFailed: if the manifest is invalid or too large, or does not match the requested digest or the
            digest in the response.
    """
    text, digest = _read(session, name, reference)
    if len(text) > MOST_BYTES:
        raise CheckFailed(f"{name}: its manifest is larger than {MOST_BYTES >> 20} MiB")
    actual = digest_of(text)
    digest = reference if reference.startswith("sha256:") else digest
    if digest.startswith("sha256:") and digest != actual:
        raise wrong(f"{name}: its manifest", digest, actual)
    return text, read_manifest(text, str(name))


def _read(session: RegistrySession, name: RegistryName, reference: str) -> tuple[bytes, str]:
    """Download a manifest. Return the manifest's bytes and the digest in the response's header. If the
    transfer is interrupted, download the manifest again.
    """
    import requests

    for number in range(1, TRIES + 1):
        with session.ask(
            "GET",
            f"/v2/{name.repository}/manifests/{reference}",
            statuses=(200, 404),
            scope=scope(name.repository, "pull"),
            headers={"Accept": _ACCEPT},
        ) as answer:
            if answer.status_code == 404:
                raise Missing(f"{name}: no such image", fix="check the name and the tag")
            try:
                text = answer.read(MOST_BYTES + 1)
            except requests.exceptions.RequestException as error:
                if number == TRIES or broken_limit(error):
                    raise unreachable_error(session.host, error) from error
            else:
                return text, answer.headers.get("Docker-Content-Digest", "")
        session.wait(pause_before(number))
    raise AssertionError("the last try returns a response or raises an error")


def put_manifest(session: RegistrySession, name: RegistryName, text: bytes, media_type: str) -> str:
    """Upload an image's manifest, and return the manifest's digest. All blobs of the image must already be in
    the registry.

    Raises:
        CheckFailed: if the registry refuses the manifest, or stores different bytes.
    """
    where = f"/v2/{name.repository}/manifests/{name.tag}"
    headers = {"Content-Type": media_type}
    with session.ask(
        "PUT", where, statuses=(201,), scope=scope(name.repository, "pull,push"), headers=headers, data=text
    ) as answer:
        stated_digest = answer.headers.get("Docker-Content-Digest", "")
    digest = digest_of(text)
    if stated_digest.startswith("sha256:") and stated_digest != digest:
        raise wrong(f"{name}: the manifest in the registry", digest, stated_digest)
    return digest


def has_manifest(session: RegistrySession, name: RegistryName, digest: str) -> bool:
    """Return whether the tag in ``name`` already refers to the manifest with this digest."""
    with session.ask(
        "HEAD",
        f"/v2/{name.repository}/manifests/{name.tag}",
        statuses=(200, 404),
        scope=scope(name.repository, "pull,push"),
        headers={"Accept": _ACCEPT},
    ) as answer:
        return answer.status_code == 200 and answer.headers.get("Docker-Content-Digest") == digest


def has_blob(session: RegistrySession, name: RegistryName, digest: str) -> bool:
    """Return whether a repository contains the blob with this digest."""
    with session.ask(
        "HEAD",
        f"/v2/{name.repository}/blobs/{digest}",
        statuses=(200, 404),
        scope=scope(name.repository, "pull,push"),
    ) as answer:
        return bool(answer.status_code == 200)


def wrong(subject: str, digest: str, actual: str) -> CheckFailed:
    """Return the exception to raise for bytes that do not match their digest."""
    return CheckFailed(
        f"{subject} differs from its digest: expected {digest[:19]}…, but the content has {actual[:19]}…",
        fix="run the same command again; if the error occurs again, the registry or a proxy damages the data",
    )
