import json

import msgspec

from tests.unit.image import locks
from toolkit import __version__
from toolkit.image.builds.provenance import PREDICATE, STATEMENT, full_provenance, provenance, statement
from toolkit.model.lock import lock_sha256

DIGEST = "ab" * 32


def test_what_goes_into_an_image_follows_from_its_lock_alone():
    assert provenance(locks.lock()) == provenance(locks.lock())
    said = json.loads(provenance(locks.lock()))
    assert said["buildDefinition"]["externalParameters"] == {
        "architecture": "x86_64",
        "recipe": "small",
        "recipeSha256": "12" * 32,
    }
    assert said["runDetails"] == {
        "builder": {"id": "urn:toolkit:image-build", "version": {"toolkit": __version__}}
    }


def test_every_file_of_every_stage_is_a_material_once_and_so_is_the_lock():
    lock = locks.lock()
    said = json.loads(provenance(lock))["buildDefinition"]["resolvedDependencies"]
    files = (*lock.base.packages, *lock.build.debian, *lock.run.debian, *lock.run.wheels, *lock.run.sources)
    digests = [item["digest"]["sha256"] for item in said]
    assert sorted(digests) == sorted({lock_sha256(lock), *(file.sha256 for file in files)})
    twice = msgspec.structs.replace(lock, build=lock.run)
    assert len(json.loads(provenance(twice))["buildDefinition"]["resolvedDependencies"]) == len(said) - 1


def test_a_published_base_is_a_material_by_its_digest():
    said = json.loads(provenance(locks.lock(base=locks.published())))["buildDefinition"][
        "resolvedDependencies"
    ]
    assert {
        "name": "debian:bookworm",
        "uri": f"docker://debian@sha256:{DIGEST}",
        "digest": {"sha256": DIGEST},
    } in said


def test_a_statement_is_about_files_and_what_differs_by_machine_is_only_in_the_full_one():
    predicate = provenance(locks.lock())
    plain = json.loads(statement(predicate, {"rootfs.squashfs": DIGEST}))
    assert (plain["_type"], plain["predicateType"]) == (STATEMENT, PREDICATE)
    assert plain["subject"] == [{"name": "rootfs.squashfs", "digest": {"sha256": DIGEST}}]
    assert plain["predicate"] == json.loads(predicate)
    more = json.loads(
        full_provenance(
            predicate, {"x": DIGEST}, versions={"docker": "28"}, commit="c0ffee", start=0.0, end=60.0
        )
    )["predicate"]
    assert more["runDetails"]["metadata"] == {
        "startedOn": "1970-01-01T00:00:00Z",
        "finishedOn": "1970-01-01T00:01:00Z",
    }
    assert more["runDetails"]["builder"]["version"] == {"docker": "28", "toolkit": __version__}
    assert more["buildDefinition"]["resolvedDependencies"][-1] == {
        "name": "toolkit",
        "digest": {"gitCommit": "c0ffee"},
    }
