"""Test the facts about its node that a rank collects: GPUs, free space, and the image."""

import json
import os
from dataclasses import asdict

from tests.unit.tables import every_row
from toolkit.trainers.checks import node
from toolkit.trainers.checks.node import Facts
from toolkit.trainers.checks.wanted import Requirements


def test_gpus_that_may_be_opened_are_counted_and_nothing_else(tmp_path):
    for name in ("nvidia0", "nvidia7", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    # The job's cgroup forbids this device: the file exists, but the rank cannot open it.
    (tmp_path / "nvidia1").symlink_to(tmp_path / "none")
    assert node.openable(tmp_path) == (0, 7)


def test_free_space_is_told_in_bytes(tmp_path):
    told = os.statvfs(tmp_path)
    assert 0 < node.free(tmp_path) <= told.f_blocks * told.f_frsize


def test_a_folder_that_is_not_there_has_a_reason(tmp_path):
    assert node.free(tmp_path / "none") == "No such file or directory"


def test_a_folder_that_takes_nothing_has_a_reason(tmp_path, monkeypatch):
    # File permissions do not restrict root, who may run the tests.
    monkeypatch.setattr(node.os, "access", lambda *_: False)
    assert node.free(tmp_path) == "the folder is not writable"


@every_row("size", [0, 100, 1 << 16, (1 << 16) + 1, 3 << 20])
def test_a_copy_of_an_image_has_its_fingerprint(tmp_path, size):
    (tmp_path / "a").write_bytes(os.urandom(size))
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
    assert node.fingerprint(tmp_path / "a") == node.fingerprint(tmp_path / "b")


@every_row("at", [0, 1 << 15, (3 << 20) - 1])
def test_an_image_with_another_beginning_or_end_has_another(tmp_path, at):
    content = bytearray(3 << 20)
    (tmp_path / "a").write_bytes(content)
    content[at] = 1
    (tmp_path / "b").write_bytes(content)
    assert node.fingerprint(tmp_path / "a") != node.fingerprint(tmp_path / "b")


def test_an_image_that_was_cut_short_has_another(tmp_path):
    (tmp_path / "a").write_bytes(bytes(3 << 20))
    (tmp_path / "b").write_bytes(bytes((3 << 20) - 1))
    assert node.fingerprint(tmp_path / "a") != node.fingerprint(tmp_path / "b")


def test_an_image_that_is_not_there_has_a_reason(tmp_path):
    assert node.fingerprint(tmp_path / "none") == "!No such file or directory"


def test_only_the_first_rank_of_a_node_looks_at_what_is_the_same_for_all(tmp_path):
    (tmp_path / "nvidia0").touch()
    (tmp_path / "a.sif").write_bytes(b"SIF")
    wanted = Requirements(tasks=2, gpus_per_node=1, output=tmp_path, image=tmp_path / "a.sif")
    first = node.read_facts(wanted, 0, "n1", first=True, devices=tmp_path)
    second = node.read_facts(wanted, 1, "n1", first=False, devices=tmp_path)
    assert second == Facts(1, "n1", gpus=(0,))
    assert first.image == node.fingerprint(tmp_path / "a.sif")
    assert isinstance(first.output, int)
    assert isinstance(first.tmp, int)


def test_facts_are_the_same_after_a_way_as_json():
    facts = Facts(3, "n2", first=True, gpus=(0, 1), output=5, tmp="gone", image="ab", ahead=0.5, gbit=9.5)
    assert node.facts_of(json.loads(json.dumps(asdict(facts)))) == facts
