"""Test how toolkit makes facts from recorded probes of real machines, and how it reads facts files."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, CheckFailed
from toolkit.probe.evidence import parse
from toolkit.probe.probe import Bundle, encode, gather, load
from toolkit.run.command import Completed

EVIDENCE = Path(__file__).parents[2] / "evidence"


def test_the_login_node_of_the_virtual_cluster():
    host = load(EVIDENCE / "virtual-cluster-login.txt")
    assert host.slurm is not None
    assert host.slurm.version == "24.11.5"
    assert host.slurm.mpi_types == ("none", "pmix", "cray_shasta", "pmi2", "pmix_v5")
    assert host.slurm.mpi_default == "pmix"
    assert host.slurm.partitions == ("debug",)
    assert host.pmix == "5.0.7"
    assert host.mpis is not None
    assert host.mpis[0].leaks == ("OMPI_MCA_mca_base_component_path",)
    assert host.runtime is not None
    assert (host.runtime.version, host.runtime.setuid) == ("1.4.5", False)
    assert host.user_namespaces
    assert "gpu_driver" in host.absent
    assert host.cite("slurm.mpi_types") == "srun --mpi=list: none pmix cray_shasta pmi2 pmix_v5"


def test_a_machine_without_slurm():
    host = load(EVIDENCE / "no-slurm.txt")
    assert host.slurm is None
    assert "slurm" in host.absent
    assert "runtime" in host.absent
    assert host.mpis == ()
    assert host.distribution == "debian 12 (bookworm)"


@every_row(("types", "book"), [("pspmi\n|\tpspmix", "unknown"), ("pspmi", "absent")])
def test_the_pmix_of_parastation_is_there_and_of_a_release_that_is_not_known(tmp_path, types, book):
    text = (EVIDENCE / "virtual-cluster-login.txt").read_text()
    before, _, after = text.partition("@ mpi-list\n")
    answer = f"@ mpi-list\n|MPI plugin types are...\n|\tnone\n|\t{types}\n@rc 0\n"
    file = tmp_path / "said.txt"
    file.write_text(before + answer + after[after.index("@ slurm-config") :])
    host = load(file)
    assert host.slurm is not None
    assert host.slurm.mpi_types == ("none", *types.split("\n|\t"))
    assert host.pmix is None
    assert "pmix" in getattr(host, book)


@every_row("profile", [True, False])
def test_where_apparmor_restricts_user_namespaces_a_profile_of_the_starter_decides(tmp_path, profile):
    text = (EVIDENCE / "virtual-cluster-login.txt").read_text()
    before, _, after = text.partition("@ user-namespaces\n")
    lines = ["|kernel/apparmor_restrict_unprivileged_userns = 1"]
    lines += ["|profile /etc/apparmor.d/apptainer"] if profile else []
    lines += ["|profiles read", "|unshare: write failed /proc/self/uid_map: Operation not permitted", "@rc 1"]
    file = tmp_path / "said.txt"
    file.write_text(
        before + "@ user-namespaces\n" + "\n".join(lines) + "\n" + after[after.index("@ squashfuse") :]
    )
    host = load(file)
    assert host.user_namespaces is profile
    told = "/etc/apparmor.d/apptainer allows" if profile else "no profile in /etc/apparmor.d allows"
    assert told in host.cite("user_namespaces")


def test_slurm_that_does_not_answer_is_unknown_and_not_absent():
    host = load(EVIDENCE / "slurm-not-configured.txt")
    assert host.slurm is None
    assert "slurm" not in host.absent
    assert "DNS" in host.unknown["slurm"] or "Unknown host" in host.unknown["slurm"]


@every_row("file", sorted(EVIDENCE.glob("*.txt")), ids=lambda f: f.stem)
def test_no_recorded_probe_names_a_person(file):
    text = file.read_text()
    for word in ("/home/", "/root", "ada", "TOKEN", "PASSWORD"):
        assert word not in text


def test_a_facts_file_is_read_back_as_it_was_written(tmp_path):
    raw = (EVIDENCE / "virtual-cluster-login.txt").read_text()
    host = load(EVIDENCE / "virtual-cluster-login.txt")
    file = tmp_path / "facts.json"
    file.write_bytes(encode(Bundle(host=host, raw=raw)))
    assert load(file) == host
    assert msgspec.json.decode(file.read_bytes())["schema"] == "toolkit.facts/2"


def test_facts_that_were_printed_are_read_too(tmp_path):
    host = load(EVIDENCE / "virtual-cluster-login.txt")
    file = tmp_path / "facts.json"
    file.write_bytes(msgspec.json.encode(host))
    assert load(file) == host


def test_a_file_of_another_schema_and_an_answer_that_was_cut_say_so(tmp_path):
    file = tmp_path / "facts.json"
    file.write_text('{"schema": "toolkit.doctor/1"}')
    with pytest.raises(BadInput, match=r"schema: 'toolkit.doctor/1' is not one of"):
        load(file)
    file.write_text("toolkit-probe/1\n@ kernel\n|6.1\n")
    with pytest.raises(BadInput, match="ended after"):
        load(file)


class Answers:
    place = "ada@login.example.org"

    def __init__(self, text, *, timed_out=False):
        self.text, self.timed_out = text, timed_out

    def run(self, command):
        return Completed(command, 0, self.text.encode(), b"", self.timed_out)


def test_the_name_of_who_asked_is_not_saved():
    bundle = gather(Answers((EVIDENCE / "no-slurm.txt").read_text()))
    assert bundle.host.place == "login.example.org"
    assert b"ada@" not in encode(bundle)


def test_what_was_answered_before_the_time_was_up_is_kept():
    whole = (EVIDENCE / "virtual-cluster-login.txt").read_text()
    host = gather(Answers(whole[: whole.index("@ launchers")], timed_out=True)).host
    assert host.pmix == "5.0.7"
    assert "no answer in time" in host.unknown["mpis"]
    with pytest.raises(CheckFailed, match="did not answer within"):
        gather(Answers("Welcome", timed_out=True))


@every_row("content", ["", "{", "[]", '{"host": 3, "raw": ""}', "hello", "toolkit-probe/1\n@ x\n"])
def test_a_file_that_holds_no_facts_is_refused_in_one_line(tmp_path, content):
    file = tmp_path / "facts.json"
    file.write_text(content)
    with pytest.raises(BadInput, match=str(file)) as error:
        load(file)
    assert "\n" not in error.value.message


def test_a_facts_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match=r"missing\.json"):
        load(tmp_path / "missing.json")


BUNDLE = '{"host": {"place": "x", %s}, "raw": ""}'


@every_row(
    ("said", "field"),
    [
        ('"slurm": {"nodes": -5}', "host.slurm.nodes"),
        ('"shm": -1', "host.shm"),
        ('"locked_memory": -2', "host.locked_memory"),
        (f'"locked_memory": -{10**40}', "host.locked_memory"),
        ('"ptrace_scope": -1', "host.ptrace_scope"),
    ],
)
def test_a_number_that_no_probe_writes_is_refused_by_the_name_of_its_field(tmp_path, said, field):
    file = tmp_path / "facts.json"
    file.write_text(BUNDLE % said)
    with pytest.raises(BadInput) as caught:
        load(file)
    assert caught.value.message.startswith(f"{file}: {field}: ")
    assert "toolkit probe" in caught.value.fix


def test_numbers_that_a_probe_writes_are_read(tmp_path):
    file = tmp_path / "facts.json"
    file.write_text(BUNDLE % f'"locked_memory": -1, "shm": 0, "slurm": {{"nodes": {10**5}}}')
    found = load(file)
    assert (found.locked_memory, found.shm, found.slurm.nodes) == (-1, 0, 10**5)


def test_a_mark_of_utf_8_does_no_harm_and_a_byte_of_another_encoding_is_told_with_its_line(tmp_path):
    file = tmp_path / "facts.json"
    text = BUNDLE % '"distribution": "é",\n"kernel": "6"'
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load(file).distribution == "é"
    file.write_bytes(b"\n" + text.encode("latin-1"))
    with pytest.raises(BadInput, match=rf"^{file}:2: the byte at offset \d+ is not UTF-8$"):
        load(file)


def test_a_busy_machine_still_answers_what_only_reads_files(tmp_path):
    """The fake clock advances 2 s per question, and the probe stops asking programs after 40 s."""
    count = tmp_path / "count"
    count.write_text("0")
    clock = tmp_path / "date"
    clock.write_text(f'#!/bin/sh\nread -r n < {count}\necho $((n + 2)) > {count}\necho "$n"\n')
    clock.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "OMPI_MCA_btl": "self"}
    said = subprocess.run(
        ["sh", str(Path(__file__).parents[3] / "containers" / "probe.sh")],
        env=environment, capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    sections = parse(said, "here")
    assert sections["environment"].lines == ("OMPI_MCA_btl=self",)
    assert sections["pmix"].trouble == "no answer in time"
