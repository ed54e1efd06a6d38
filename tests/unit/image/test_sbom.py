import json

import msgspec

from tests.unit.image import locks
from tests.unit.schemas import bom_faults as problems
from toolkit.image.builds.sbom import sbom
from toolkit.knowledge.licences import licences, terms
from toolkit.model.lock import LockedStep

HOROVOD = LockedStep(component="horovod", words=("mpi",))


def components(content: bytes) -> dict[str, dict]:
    return {item["name"]: item for item in json.loads(content)["components"]}


def properties(item: dict) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in item["properties"]}


def test_it_is_valid_against_the_schema_with_every_provider():
    assert problems(sbom(locks.lock(steps=(HOROVOD,)))) is None
    assert problems(sbom(locks.lock(base=locks.published()))) is None


def test_the_entry_of_toolkit_names_its_licence():
    (tool,) = json.loads(sbom(locks.lock()))["metadata"]["tools"]["components"]
    assert tool["licenses"] == [{"license": {"id": "Apache-2.0"}}]


def test_the_schema_finds_what_is_wrong():
    damaged = json.loads(sbom(locks.lock()))
    damaged["components"][0]["hashes"] = [{"alg": "SHA-256", "content": "no hash"}]
    assert problems(json.dumps(damaged).encode()) is not None


def test_every_licence_that_is_known_is_one_of_spdx():
    made = [
        locks.lock(
            solution=msgspec.structs.replace(locks.lock().solution, chosen=(c,)),
            licences=terms({c.component: "1.0"}),
        )
        for c in (locks.chosen(name, "1.0", "source") for name in licences())
    ]
    assert [problems(sbom(lock)) for lock in made] == [None] * len(licences())
    assert components(sbom(locks.lock()))["mpi4py"]["licenses"] == [{"license": {"id": "BSD-2-Clause"}}]


def test_what_package_lists_cannot_see_is_said_with_its_hash_and_its_options():
    found = components(sbom(locks.lock(steps=(HOROVOD,))))
    lock = locks.lock()
    assert properties(found["horovod"])["toolkit:built-with"] == "HOROVOD_WITH_MPI=1"
    assert properties(found["openmpi"])["toolkit:in-package-lists"] == "no"
    assert found["openmpi"]["hashes"][0]["content"] == lock.run.sources[0].sha256
    assert properties(found["libpmix2"]) == {
        "toolkit:compiled": "no",
        "toolkit:component": "pmix",
        "toolkit:file": "libpmix2_4.2.2-1_amd64.deb",
        "toolkit:in-package-lists": "yes",
        "toolkit:provider": "debian",
        "toolkit:version": "4.2.2",
    }


def test_package_urls_are_those_of_the_registries():
    found = components(sbom(locks.lock()))
    assert (
        found["python3.11"]["purl"]
        == "pkg:deb/debian/python3.11@3.11.2-6%2Bdeb12u6?arch=amd64&distro=bookworm"
    )
    assert found["Markdown"]["purl"] == "pkg:pypi/markdown@3.5"
    assert found["horovod"]["purl"].startswith("pkg:generic/horovod@0.28.1?checksum=sha256:")


def test_what_only_the_build_needs_is_not_in_it():
    assert "g++" not in components(sbom(locks.lock()))


def test_an_archive_that_only_the_build_needs_is_not_in_it():
    lock = locks.lock()
    build = msgspec.structs.replace(
        lock.build, sources=(locks.file("cuda", "12.2", ".run"), *lock.run.sources)
    )
    chosen = (*lock.solution.chosen, locks.chosen("cuda", "12.2", "pypi"))
    made = locks.lock(build=build, solution=msgspec.structs.replace(lock.solution, chosen=chosen))
    (item,) = [i for name, i in components(sbom(made)).items() if name == "cuda"]
    assert "hashes" not in item
    assert "toolkit:compiled" not in properties(item)


def test_that_the_packages_of_a_published_base_are_not_in_it_is_said():
    content = sbom(locks.lock(base=locks.published()))
    document = json.loads(content)
    assert document["compositions"] == [
        {"aggregate": "incomplete", "assemblies": ["image:small", "base:debian:bookworm"]}
    ]
    told = properties(document["metadata"]["component"])
    assert told["toolkit:not-read"] == "Debian packages of the published base"
    assert problems(content) is None
    assert "compositions" not in json.loads(sbom(locks.lock()))
    assert "not-read" not in sbom(locks.lock()).decode()


def test_big_components_depend_on_each_other_and_the_image_on_the_rest():
    document = json.loads(sbom(locks.lock()))
    refs = {item["name"]: item["bom-ref"] for item in document["components"]}
    needs = {edge["ref"]: edge["dependsOn"] for edge in document["dependencies"]}
    assert needs[refs["horovod"]] == sorted(refs[n] for n in ("openmpi", "python3.11", "tensorflow-cpu"))
    assert needs[refs["openmpi"]] == sorted(refs[n] for n in ("libpmix2", "debian"))
    assert refs["horovod"] in needs["image:small"]
    assert refs["tensorflow-cpu"] not in needs["image:small"]


def test_the_same_lock_gives_the_same_bytes_and_another_lock_another_serial_number():
    first, again = sbom(locks.lock()), sbom(locks.lock())
    later = json.loads(sbom(locks.lock(epoch=1_700_000_001)))
    assert first == again
    assert json.loads(first)["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert later["serialNumber"] != json.loads(first)["serialNumber"]


def test_what_pip_compiles_is_in_its_list_and_said_to_be_compiled():
    chosen = (*locks.lock().solution.chosen[:-1], locks.chosen("horovod", "0.28.1", "pypi"))
    found = components(
        sbom(locks.lock(solution=msgspec.structs.replace(locks.lock().solution, chosen=chosen)))
    )
    assert found["horovod"]["purl"] == "pkg:pypi/horovod@0.28.1"
    told = properties(found["horovod"])
    assert (told["toolkit:compiled"], told["toolkit:in-package-lists"]) == ("yes", "yes")
