"""Test that shared facts contain no user, account, machine or address."""

from pathlib import Path

import msgspec

from tests.unit.tables import every_row
from toolkit.model.facts import HostFacts
from toolkit.model.sitefacts import Association, Folder, SiteFacts
from toolkit.probe.bundle import Bundle, encode, load_bundle
from toolkit.probe.group import Group
from toolkit.probe.share import WITHHELD, without_users

EVIDENCE = Path(__file__).parents[2] / "evidence"


def machine(name, **facts):
    return HostFacts(
        place=name,
        evidence={"glibc": f"{name}: 2.36, asked by alice"},
        absent={"squashfuse": "not in PATH=/home/alice/bin"},
        environment={"SINGULARITY_BIND": "/proj/phys7/data"},
        user_site={"3.11": ("mpi4py 4.1.2",)},
        glibc="2.36",
        **facts,
    )


BUNDLE = Bundle(
    host=machine(
        "alice@login.phys.example.org", compute_nodes=("cn0412", "cn0413"), differs={"glibc": "cn0412: 1"}
    ),
    login=machine("login3.phys.example.org"),
    groups=(Group(nodes=("cn0412", "cn0413"), facts=machine("cn0412")),),
    silent={"cn0414": "refused alice"},
    site=SiteFacts(
        cluster="big",
        associations=(Association(account="phys7"),),
        folders=(Folder(variable="WORK", path="/work/phys7/alice", mount="/work"),),
        loaded=("", "alice may not load it"),
        scratch=("/local", "/home/alice/tmp"),
    ),
    raw="everything, of alice, on cn0412",
)


def test_no_word_that_names_a_person_an_account_or_a_machine_is_left():
    text = encode(without_users(BUNDLE, "big")).decode()
    for word in ("alice", "phys", "cn04", "login3", "example.org"):
        assert word not in text, word


def test_what_a_profile_needs_stays(tmp_path):
    file = tmp_path / "big.json"
    file.write_bytes(encode(without_users(BUNDLE, "big")))
    found = load_bundle(file)
    assert found.host.place == "big"
    assert found.host.glibc == "2.36"
    assert found.host.compute_nodes == ("node1", "node2")
    assert found.groups[0].nodes == ("node1", "node2")
    assert found.site.folders == (Folder(variable="WORK", path="/work", mount="/work"),)
    assert found.site.scratch == ("/local", WITHHELD)
    assert found.site.loaded == ("", "the module did not load")


@every_row("file", ["virtual-cluster-nodes.txt", "virtual-cluster-site.txt", "several-mpis.txt"])
def test_facts_that_decide_are_as_before(file):
    # The place is the path of the file; a path below /home is not shared.
    host = msgspec.structs.replace(load_bundle(EVIDENCE / file).host, place="big")
    shared = without_users(Bundle(host=host, raw=""), host.place).host
    apart = {"evidence", "user_packages", "user_site", "differs", "compute_nodes"}
    for field in msgspec.structs.fields(HostFacts):
        if field.name not in apart | {"absent", "unknown"}:
            assert getattr(shared, field.name) == getattr(host, field.name), field.name
