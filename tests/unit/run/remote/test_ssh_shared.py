"""Test a shared SSH connection with a fake ssh that runs the remote shell locally; tests/full uses a real
ssh.
"""

import getpass
import os

import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput, Missing
from toolkit.model.progress import Silent
from toolkit.run.command import Command
from toolkit.run.remote.ssh_shared import SharedRunner, shared_runner
from toolkit.run.stage import Parcel, stage

# As with ssh, the last argument is a shell line. The connection is open while the socket file exists.
SSH = r"""#!/bin/sh
printf '%s\n' "$*" >> "$SAID"
case " $* " in
*" -G "*) printf 'user ada\ncontrolpath %s\n' "${CONTROL_PATH-$SOCKET}"; exit 0 ;;
*" -O check "*) [ -e "$SOCKET" ]; exit ;;
esac
[ -e "$SOCKET" ] || { echo "Connection closed by UNKNOWN port 65535" >&2; exit 255; }
for line; do :; done
exec sh -c "$line"
"""


@pytest.fixture
def socket(tmp_path, monkeypatch):
    """Return the socket file of an open connection; removing the file closes the connection."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    path = tmp_path / "socket"
    path.touch()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SOCKET", str(path))
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    return path


@pytest.fixture
def runner(socket):
    found = shared_runner("ada@login:2222")
    assert isinstance(found, SharedRunner)
    return found


def test_it_is_used_where_a_person_opened_one_and_only_there(socket, monkeypatch, tmp_path):
    assert shared_runner("login") is not None
    socket.unlink()
    assert shared_runner("login") is None
    socket.touch()
    monkeypatch.setenv("CONTROL_PATH", "none")
    assert shared_runner("login") is None


def test_where_there_is_no_ssh_there_is_none(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert shared_runner("login") is None


@every_row("host", ["-oProxyCommand=id", "two words", "", "login:0"])
def test_what_is_no_destination_never_reaches_ssh(socket, tmp_path, host):
    with pytest.raises(BadInput):
        shared_runner(host)
    assert not (tmp_path / "said").exists()


def test_no_connection_of_its_own_is_ever_opened(runner, socket, tmp_path):
    runner.run(Command.of("true"))
    said = (tmp_path / "said").read_text().splitlines()[-1]
    assert said.startswith(
        f"-S {socket} -o ControlMaster=no -o ProxyCommand=false -o BatchMode=yes -p 2222 -- ada@login "
    )


def test_words_environment_input_and_status_pass_as_they_are(runner):
    words = ("printf", "%s|", "a b", "$(id)", "'", '"', "\n", "ä☃", "", "*", "~")
    assert runner.run(Command(words)).text == "a b|$(id)|'|\"|\n|ä☃||*|~|"
    done = runner.run(Command(("sh", "-c", 'cat; echo "$A" >&2; exit 3'), stdin=b"in", env={"A": "a b"}))
    assert (done.status, done.text, done.errors) == (3, "in", "a b\n")
    lines = []
    assert runner.stream(Command.of("printf", "one\ntwo"), lines.append).ok
    assert lines == ["one", "two"]


def test_files_are_written_whole_and_read_from_an_offset(runner, tmp_path):
    target = tmp_path / "new" / "with space" / "it's"
    runner.write(str(target), b"0123456789", 0o600)
    assert target.read_bytes() == b"0123456789"
    assert target.stat().st_mode & 0o777 == 0o600
    assert (runner.read(str(target), 4), runner.read(str(target), 99)) == (b"456789", b"")
    assert runner.read(str(tmp_path / "nowhere")) == b""
    assert [path.name for path in target.parent.iterdir()] == ["it's"]


def test_a_file_is_written_by_a_number_that_has_no_name(runner, tmp_path, monkeypatch):
    def nameless():
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr(getpass, "getuser", nameless)
    runner.write(str(tmp_path / "it"), b"x")
    assert (tmp_path / "it").read_bytes() == b"x"


def test_content_that_did_not_arrive_whole_gets_no_name(runner, tmp_path, monkeypatch):
    target = tmp_path / "it"
    target.write_bytes(b"old")
    cut = SSH.replace('exec sh -c "$line"', 'head -c 3 | sh -c "$line"')
    (tmp_path / "bin" / "ssh").write_text(cut)
    with pytest.raises(Missing, match=f"cannot write {target}"):
        runner.write(str(target), b"0123456789")
    assert target.read_bytes() == b"old"
    assert not list(tmp_path.glob(".it.*"))


@every_row("there", [0, 3, 9_000_000])
def test_a_copy_goes_on_from_what_is_there(runner, tmp_path, there):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(os.urandom(20_000_000))
    source.chmod(0o640)
    target.write_bytes(source.read_bytes()[:there])
    steps = []
    runner.send(source, str(target), lambda done, total: steps.append((done, total)))
    assert target.read_bytes() == source.read_bytes()
    assert (steps[0], steps[-1]) == ((there, 20_000_000), (20_000_000, 20_000_000))
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_longer_file_there_is_replaced(runner, tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"new")
    target.write_bytes(b"something longer")
    runner.send(source, str(target))
    assert target.read_bytes() == b"new"


def test_staging_works_through_it(runner, tmp_path):
    source = tmp_path / "a"
    source.write_bytes(os.urandom(100_000))
    parcel = Parcel.of(source, str(tmp_path / "there" / "b"))
    assert (stage(runner, [parcel], Silent()), stage(runner, [parcel], Silent())) == (1, 0)
    assert (tmp_path / "there" / "b").read_bytes() == source.read_bytes()


def test_a_connection_that_was_closed_is_told_with_what_opens_it(runner, socket):
    socket.unlink()
    with pytest.raises(Missing, match="the shared SSH connection is closed") as caught:
        runner.read("/etc/hostname")
    assert caught.value.fix == "open the connection again: ssh -p 2222 ada@login"


def test_what_may_not_be_written_is_named(runner):
    with pytest.raises(Missing, match="cannot write /proc/no/such: "):
        runner.write("/proc/no/such", b"x")
    with pytest.raises(Missing, match="cannot read /proc/self/mem: "):
        runner.read("/proc/self/mem")


@every_row(("mode", "shut"), [(0o600, True), (0o700, True), (0o644, False)])
def test_a_private_file_makes_its_own_folder_private_and_no_other(runner, tmp_path, mode, shut):
    target = tmp_path / "runs" / "my job" / "job.sh"
    runner.write(str(target), b"", mode)
    own, above = (folder.stat().st_mode & 0o077 for folder in (target.parent, target.parent.parent))
    assert (own == 0, above == 0) == (shut, False)
    assert own in (0, 0o055)
