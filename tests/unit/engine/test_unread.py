"""Test that the engine uses every fact about host and image, except the facts in ``UNREAD``."""

import ast
from pathlib import Path

import toolkit.engine
from toolkit.knowledge.reported import reported_faults
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts, SlurmFacts
from toolkit.model.mpifacts import HostMpi, ImageMpi

ENGINE = Path(toolkit.engine.__file__).parent
FACTS = {
    "host": HostFacts,
    "host.slurm": SlurmFacts,
    "host.runtime": ContainerRuntime,
    "host.mpis": HostMpi,
    "image": ImageFacts,
    "image.mpi": ImageMpi,
}
UNREAD = {
    "host.schema": "names the form of the file, for its readers",
    "host.other_runtimes": "`--runtime` makes one of them the host's runtime before rules see the facts",
    "host.slurm.partitions": "a job asks for a partition; `launch` checks it before the engine judges",
    "host.runtime.path": "the name of the command in job scripts",
    "image.schema": "names the form of the file, for its readers",
    "image.path": "the name of the image in messages and job scripts",
    "image.digest": "says which image was judged, in records and fixes",
    "image.hwloc": "no launch was seen to depend on the image's hwloc; that of Slurm is not a fact",
    "image.labels": "what the maker of the image says, which no program reads",
    "image.entrypoint": "`entry_script` and `entry_sets` say what it does",
    "image.mpi.library_string": "words of the library, from which version and device are read",
    "image.mpi.how": "evidence of what names the library",
}
"""Facts that the engine does not use, and what each is for."""


def words() -> set[str]:
    """Return each name in the engine's code that can be a fact, and the facts of reported faults."""
    found: set[str] = set()
    for file in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
                found.add(node.value.rpartition(".")[2])
    return found | {name.rpartition(".")[2] for row in reported_faults() for name in row.facts}


def test_a_fact_that_no_rule_reads_is_named_with_its_reason():
    read = words()
    unread = {
        f"{name}.{field}"
        for name, facts in FACTS.items()
        for field in facts.__struct_fields__
        if field not in read
    }
    assert unread == set(UNREAD)
    assert all(len(reason) > 20 for reason in UNREAD.values())
