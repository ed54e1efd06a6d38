"""Write the provenance of an image, that is, a list of everything from which the image was built.

The format is SLSA provenance in an in-toto statement.

- ``documents.documents`` puts the provenance into the image, at PROVENANCE_PATH.
- ``attachments.attach`` adds the provenance to the SIF, as a statement about the squashfs in the SIF.
- ``attachments.write_full_provenance`` writes the full provenance to a file beside the SIF. Only the full
  provenance has facts that differ between machines. ``image sign --provenance full`` adds this file to the
  SIF and signs the SIF.

The provenance in the image and in the unsigned SIF depends only on the lock and on toolkit's version. It
contains no time of day, commit, engine version or machine name.
"""

import datetime as dt
from collections.abc import Mapping

import msgspec

from toolkit import __version__
from toolkit.image.builds.purl import debian, generic, pypi
from toolkit.model.lock import Lock, LockedFile, lock_sha256

PROVENANCE_PATH = "/opt/toolkit/provenance.json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:toolkit:image:1"
BUILDER = "urn:toolkit:image-build"


def provenance(lock: Lock) -> bytes:
    """Return the SLSA predicate that toolkit puts into the image: a JSON document that names the recipe, the
    lock, and all files in the lock, with their hashes.
    """
    return _text(_predicate(lock))


def statement(predicate: bytes, subjects: Mapping[str, str]) -> bytes:
    """Return an in-toto statement: the provenance ``predicate`` applies to the files in ``subjects``.
    ``subjects`` maps the files' names to their SHA-256.
    """
    return _text(
        {
            "_type": STATEMENT,
            "subject": [{"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)],
            "predicateType": PREDICATE,
            "predicate": msgspec.json.decode(predicate),
        }
    )


def full_provenance(
    predicate: bytes,
    subjects: Mapping[str, str],
    *,
    versions: Mapping[str, str],
    commit: str,
    start: float,
    end: float,
) -> bytes:
    """Return the in-toto statement of the full provenance. It contains ``predicate`` and facts that differ
    between machines.

    ``versions`` maps each program that made the SIF, such as ``docker``, to its version. ``commit`` is
    toolkit's Git commit, or empty if unknown. ``start`` and ``end`` are the times at which the build started
    and ended, in Unix seconds.
    """
    whole = msgspec.json.decode(predicate)
    details = whole.setdefault("runDetails", {})
    details.setdefault("builder", {"id": BUILDER}).setdefault("version", {}).update(versions)
    details["metadata"] = {"startedOn": _time(start), "finishedOn": _time(end)}
    if commit:
        source = {"name": "toolkit", "digest": {"gitCommit": commit}}
        whole.setdefault("buildDefinition", {}).setdefault("resolvedDependencies", []).append(source)
    return statement(msgspec.json.encode(whole), subjects)


def _predicate(lock: Lock) -> dict[str, object]:
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "recipe": lock.recipe,
                "recipeSha256": lock.recipe_sha256,
                "architecture": lock.solution.architecture,
            },
            "internalParameters": {"epoch": lock.epoch},
            "resolvedDependencies": _materials(lock),
        },
        "runDetails": {"builder": {"id": BUILDER, "version": {"toolkit": __version__}}},
    }


def _materials(lock: Lock) -> list[dict[str, object]]:
    base = lock.base.name
    materials = {lock.recipe: _material(f"{lock.recipe}.lock.json", "", lock_sha256(lock))}
    stages = (lock.build, lock.run)
    providers = {chosen.component: chosen.provider for chosen in lock.solution.chosen}
    for file in (*lock.base.packages, *(f for stage in stages for f in stage.debian)):
        materials[file.sha256] = _of(file, debian(file, base))
    for file in (f for stage in stages for f in stage.wheels):
        materials[file.sha256] = _of(file, pypi(file))
    for file in (f for stage in stages for f in stage.sources):
        wheel = providers.get(file.name) == "pypi"
        materials[file.sha256] = _of(file, pypi(file) if wheel else generic(file))
    if lock.base.published:
        digest = lock.base.published.rpartition("sha256:")[2]
        materials[base] = _material(base, f"docker://{lock.base.published}", digest)
    return [materials[key] for key in sorted(materials, key=lambda key: (str(materials[key]["name"]), key))]


def _of(file: LockedFile, purl: str) -> dict[str, object]:
    return _material(file.file, purl, file.sha256)


def _material(name: str, uri: str, digest: str) -> dict[str, object]:
    return {"name": name, **({"uri": uri} if uri else {}), "digest": {"sha256": digest}}


def _time(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1) + b"\n"
