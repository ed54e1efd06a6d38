"""Test the SSH runner with the sshd of a login node."""

import contextlib
import json
import os
import re
import subprocess
import threading
import time
import uuid
from pathlib import Path

import pytest

from tests.services.jobs import as_root
from tests.services.program import interrupted_at, toolkit
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.model.progress import Silent
from toolkit.run.command import Command
from toolkit.run.remote.keys import new_key_pair
from toolkit.run.remote.ssh import SshRunner
from toolkit.run.stage import Parcel, stage


@pytest.fixture(scope="module")
def there(cluster):
    runner = SshRunner("login", cluster.ssh_config)
    yield runner
    runner.close()


def remote(runner, script, **more):
    return runner.run(Command(("sh", "-c", script), **more))


# Commands


def test_streams_and_status_come_back_apart(there):
    done = remote(there, "echo out; echo err >&2; exit 3")
    assert (done.status, done.text, done.errors, done.ok) == (3, "out\n", "err\n", False)


def test_words_environment_and_folder_reach_the_program_as_they_are(there):
    words = ("printf", "%s|", "a b", "$(id)", "`id`", "'", '"', "\n", "ä\N{SNOWMAN}", "", "*", "~")
    assert there.run(Command(words)).text == "a b|$(id)|`id`|'|\"|\n|ä\N{SNOWMAN}||*|~|"
    told = Command(("sh", "-c", 'pwd; printf %s "$MARK"'), env={"MARK": "a '$(id)' b"}, cwd="/work/ada")
    assert there.run(told).text == "/work/ada\na '$(id)' b"


def test_a_program_that_is_not_there_has_the_shells_status(there):
    done = there.run(Command.of("no-such-program"))
    assert done.status == 127
    with pytest.raises(CheckFailed, match="no-such-program exited with status 127"):
        done.require("trying it")


def test_a_program_that_a_signal_ended_has_the_status_of_ssh(there):
    assert remote(there, "kill -KILL $$").status == 255


def test_lines_come_as_they_are_written(there):
    seen = []
    done = there.stream(
        Command(("sh", "-c", "echo one; sleep 1; printf two")),
        lambda line: seen.append((line, time.monotonic())),
    )
    assert [line for line, _ in seen] == ["one", "two"]
    assert seen[1][1] - seen[0][1] > 0.5
    assert done.text == "one\ntwo"


def test_input_that_a_program_answers_while_it_reads_does_not_block(there):
    given = os.urandom(6_000_000)
    assert there.run(Command(("cat",), stdin=given, timeout=60)).stdout == given


def test_a_program_that_ignores_its_input_may_end(there):
    assert there.run(Command(("true",), stdin=b"x" * 6_000_000, timeout=60)).ok


def test_without_input_a_program_reads_nothing(there):
    assert there.run(Command(("cat",), timeout=10)).stdout == b""


def test_twenty_megabytes_come_in_seconds(there):
    began = time.monotonic()
    done = there.run(Command(("head", "-c", "20000000", "/dev/zero"), timeout=60))
    assert len(done.stdout) == 20_000_000
    assert time.monotonic() - began < 15


def test_a_command_that_takes_too_long_is_ended_there(cluster, there):
    done = there.run(Command(("sh", "-c", "echo begun; exec sleep 5432"), timeout=1))
    assert (done.timed_out, done.ok, done.text) == (True, False, "begun\n")
    assert there.run(Command(("pgrep", "-f", "^sleep 5432"))).status == 1


def test_an_interrupted_command_is_ended_there(there):
    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        there.stream(Command(("sh", "-c", "echo begun; exec sleep 6543")), interrupt)
    assert there.run(Command(("pgrep", "-f", "^sleep 6543"))).status == 1


def test_a_node_behind_the_login_node_is_reached(cluster):
    runner = SshRunner("node2", cluster.ssh_config)
    try:
        assert runner.run(Command.of("hostname")).text == "node2\n"
    finally:
        runner.close()


# Files


def test_send_brings_what_is_not_there_and_nothing_twice(there, tmp_path):
    folder = f"/work/ada/{uuid.uuid4().hex}/deep er"
    source = tmp_path / "data"
    source.write_bytes(os.urandom(3_000_000))
    source.chmod(0o750)
    steps = []
    for _ in range(2):
        there.send(source, f"{folder}/it", lambda done, total: steps.append((done, total)))
    assert there.read(f"{folder}/it") == source.read_bytes()
    assert steps[0] == (0, 3_000_000)
    assert steps[-2:] == [(3_000_000, 3_000_000)] * 2
    assert there.run(Command(("stat", "-c", "%a", f"{folder}/it"))).text == "750\n"


def test_an_interrupted_copy_goes_on_and_has_no_name_until_it_was_checked(there, tmp_path):
    folder = f"/work/ada/{uuid.uuid4().hex}"
    there.write(f"{folder}/it", b"old")
    source = tmp_path / "data"
    source.write_bytes(os.urandom(3_000_000))
    parcel = Parcel.of(source, f"{folder}/it")
    seen = []

    class Interrupted(Silent):
        def detail(self, text):
            seen.append(text)
            if text == "50%":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage(there, [parcel], Interrupted())
    assert there.read(f"{folder}/it") == b"old"
    # The connection still works, and the next attempt sends the rest of the file.
    seen.clear()
    assert stage(there, [parcel], Seen(seen)) == 1
    assert int(seen[0].rstrip("%")) >= 40
    assert there.read(f"{folder}/it") == source.read_bytes()
    assert there.run(Command(("ls", "-A", folder))).text == "it\n"


def test_an_image_is_pushed_once_and_an_interrupted_push_leaves_no_image(cluster, there, tmp_path):
    image = tmp_path / "it.sif"
    image.write_bytes(os.urandom(100_000_000))
    folder = f"/work/ada/{uuid.uuid4().hex}"
    words = (
        "image",
        "push",
        str(image),
        f"{folder}/",
        "--host",
        "login",
        "--ssh-config",
        str(cluster.ssh_config),
    )
    status, _ = interrupted_at("Copying", *words)
    assert status == 130
    assert there.read(f"{folder}/it.sif") == b""
    first = json.loads(toolkit(*words, "--json").stdout)
    again = json.loads(toolkit(*words, "--json").stdout)
    assert (first["path"], first["reused"], again["reused"]) == (f"{folder}/it.sif", False, True)
    said = there.run(Command(("sha256sum", f"{folder}/it.sif"))).text
    assert said.startswith(first["sha256"])
    assert there.run(Command(("ls", "-A", folder))).text == "it.sif\n"


class Seen(Silent):
    def __init__(self, seen):
        self.seen = seen

    def detail(self, text):
        self.seen.append(text)


def test_write_and_read_from_an_offset(there):
    target = f"/work/ada/{uuid.uuid4().hex}/new/file"
    there.write(target, b"0123456789", mode=0o600)
    assert (there.read(target, 4), there.read(target, 99), there.read("/work/ada/nowhere")) == (
        b"456789",
        b"",
        b"",
    )
    assert there.run(Command(("stat", "-c", "%a", target))).text == "600\n"


@pytest.mark.parametrize("target", ["/root/not-mine", "/no/such/place", "/etc/passwd"])
def test_a_place_that_may_not_be_written_is_named(there, target):
    with pytest.raises(Missing, match=f"login: cannot write {target}: "):
        there.write(target, b"x")


def test_a_file_that_may_not_be_read_is_named(there):
    with pytest.raises(Missing, match=r"login: cannot read /etc/shadow: .*Permission denied"):
        there.read("/etc/shadow")


# Trust


def answered_yes(fix):
    """Run a fix's command on a terminal and answer yes, as users do after they compare the fingerprint."""
    command = fix.rpartition("then: ")[2]
    ours, theirs = os.openpty()
    words = ["setsid", "--ctty", "sh", "-c", command]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs) as asking:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # reading fails when the other side closes the terminal
            while some := os.read(ours, 1000):
                said += some
                if some.rstrip().endswith(b"(yes/no/[fingerprint])?"):
                    os.write(ours, b"yes\n")
    os.close(ours)
    assert b"fingerprint is SHA256:" in said
    assert asking.returncode == 0, said
    return command


def test_the_command_of_the_fix_adds_it(copied, tmp_path):
    (tmp_path / "known_hosts").write_text("")
    with pytest.raises(Missing) as caught:
        SshRunner("login", copied)
    answered_yes(caught.value.fix)
    SshRunner("login", copied).close()


def test_a_changed_host_key_is_refused(copied, tmp_path):
    known = tmp_path / "known_hosts"
    known.write_text(f"{known.read_text().split()[0]} {new_key_pair().public}\n")
    with pytest.raises(
        Missing, match=r"its host key is .*, but .*known_hosts:1 has .*this may be an attack"
    ) as caught:
        SshRunner("login", copied)
    assert re.search(r"ssh-keygen -f \S+ -R '\[127\.0\.0\.1\]:\d+'", caught.value.fix)


def test_marker_lines_and_nonsense_hide_no_other_line(copied, tmp_path):
    known = tmp_path / "known_hosts"
    other = new_key_pair().public
    others = f"@cert-authority *.example {other}\n@revoked * {other}\nhalf a line\nx ssh-rsa !!!\n"
    known.write_text(others + known.read_text())
    SshRunner("login", copied).close()


def test_a_revoked_key_is_refused_though_it_is_listed(copied, tmp_path):
    known = tmp_path / "known_hosts"
    listed = known.read_text()
    known.write_text(f"{listed}@revoked * {listed.partition(' ')[2]}")
    with pytest.raises(Missing, match=r"is revoked in .*known_hosts:2"):
        SshRunner("login", copied)


def test_a_gateway_that_is_unknown_is_refused_too(copied, tmp_path):
    known = tmp_path / "known_hosts"
    names, key = known.read_text().split(" ", 1)
    known.write_text(f"{','.join(names.split(',')[1:])} {key}")
    with pytest.raises(Missing, match=r"^127\.0\.0\.1 port \d+: unknown host") as caught:
        SshRunner("node1", copied)
    command = answered_yes(caught.value.fix)
    options = f"-F {copied} -o StrictHostKeyChecking=ask"
    assert re.fullmatch(rf"ssh {re.escape(options)} -p \d+ ada@login true", command)
    SshRunner("node1", copied).close()


def test_a_host_behind_a_gateway_is_added_by_ssh_which_goes_the_whole_way(copied, tmp_path):
    known = tmp_path / "known_hosts"
    names, key = known.read_text().split(" ", 1)
    known.write_text(f"{names.split(',')[0]} {key}")
    with pytest.raises(Missing, match=r"^node1 port 22: unknown host") as caught:
        SshRunner("node1", copied)
    command = answered_yes(caught.value.fix)
    assert command == f"ssh -F {copied} -o StrictHostKeyChecking=ask node1 true"
    SshRunner("node1", copied).close()


def test_a_gateway_that_does_not_let_in_is_the_one_that_is_named(copied, tmp_path):
    (tmp_path / "id_ecdsa").write_text(new_key_pair().private)
    with pytest.raises(Missing, match=r"^127\.0\.0\.1 port \d+: the login of ada was refused") as caught:
        SshRunner("node1", copied)
    assert caught.value.fix == f"check that this command works: ssh -F {copied} node1 true"


def test_a_wrong_key_is_not_let_in(copied, tmp_path):
    (tmp_path / "id_ecdsa").write_text(new_key_pair().private)
    with pytest.raises(Missing, match="the login of ada was refused") as caught:
        SshRunner("login", copied)
    assert caught.value.fix == f"check that this command works: ssh -F {copied} login true"


def test_folders_with_spaces_are_understood(copied, tmp_path):
    folder = tmp_path / "with some spaces"
    folder.mkdir()
    for name in ("known_hosts", "id_ecdsa"):
        (tmp_path / name).rename(folder / name)
    copied.write_text(copied.read_text().replace(f'"{tmp_path}/', f'"{folder}/'))
    SshRunner("login", copied).close()


def test_the_persons_fabric_files_are_not_read(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".fabric.yaml", ".invoke.yaml"):
        (tmp_path / name).write_text(
            "user: nobody\nport: 1\nrun: {shell: /bin/false}\nconnect_kwargs: {password: x}\n"
        )
    runner = SshRunner("login", cluster.ssh_config)
    try:
        assert runner.run(Command.of("id", "-un")).text == "ada\n"
    finally:
        runner.close()


# What fails


@pytest.mark.parametrize("host", ["", "-oProxyCommand=id", "two words", "a\nb"])
def test_what_is_no_destination_is_bad_input(host):
    with pytest.raises(BadInput, match="not an SSH destination"):
        SshRunner(host)


def test_a_configuration_that_is_not_there_is_bad_input():
    with pytest.raises(BadInput, match="/no/config: no such file"):
        SshRunner("login", Path("/no/config"))


def test_a_configuration_that_cannot_be_read_is_bad_input(tmp_path):
    (tmp_path / "config").write_text("Host x\nnonsense\n")
    with pytest.raises(BadInput, match="nonsense"):
        SshRunner("login", tmp_path / "config")


@pytest.mark.parametrize("address", ["Port 1", "HostName no-such-host.invalid"])
def test_a_host_that_does_not_answer_is_missing(tmp_path, address):
    (tmp_path / "config").write_text(f"Host far\n    {address}\n" + "    HostName 127.0.0.1\n")
    with pytest.raises(Missing, match="cannot be reached over SSH"):
        SshRunner("far", tmp_path / "config")


def test_a_connection_that_is_lost_during_a_command_is_told_and_made_anew(cluster):
    runner = SshRunner("login", cluster.ssh_config)
    end = threading.Timer(1, as_root, (cluster, "pkill", "-KILL", "-f", "^sshd-session: ada"))
    end.start()
    try:
        with pytest.raises(Missing, match="the SSH connection was lost while a command ran"):
            runner.run(Command.of("sleep", "30", timeout=20))
        assert runner.run(Command.of("hostname")).text == "login\n"  # the next command connects again
    finally:
        end.join()
        runner.close()
