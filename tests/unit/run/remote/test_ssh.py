"""Test the SSH runner: SSH passes one command line instead of separate words."""

import getpass
import os
import shlex
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paramiko import SSHException
from paramiko.ssh_exception import NoValidConnectionsError

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.run.command import Command
from toolkit.run.remote import ssh
from toolkit.run.remote.ssh import SshRunner, _continue, _part_name, shell_line
from toolkit.run.remote.ssh_connect import why

WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(WORD, min_size=1))
def test_the_far_shell_reads_the_same_words(words):
    assert shlex.split(shell_line(Command(tuple(words)))) == words


@given(WORD.filter(bool))
def test_values_and_folders_cannot_break_out(text):
    line = shell_line(Command(("x",), env={"A": text}, cwd=text))
    assert shlex.split(line) == ["cd", "--", text, "&&", "env", f"A={text}", "x"]


@every_row("host", ["", "-oProxyCommand=id", "two words", "a\nb"])
def test_what_is_no_destination_is_refused_before_anything_is_asked(host):
    with pytest.raises(BadInput, match="not an SSH destination"):
        SshRunner(host)


@every_row("port", ["99999", "65536", "0", "abc", "", "-1", "+22", "²"])
@every_row("who", ["", "ada@"])
def test_a_port_that_is_none_is_refused_before_anything_is_asked(who, port):
    with pytest.raises(BadInput) as caught:
        SshRunner(f"{who}localhost:{port}")
    assert (
        caught.value.message == f"--host {who}localhost:{port}: {port!r} is not a port; ports are 1 to 65535"
    )


def test_a_port_of_the_configuration_that_is_none_is_refused_with_its_file(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host far\n    HostName 127.0.0.1\n    Port 99999\n")
    with pytest.raises(BadInput, match=f"{config}: far: 99999 is not a port"):
        SshRunner("far", config)


class Sftp:
    """A fake SFTP client for this machine's files; ``stat`` removes the file ``vanishing``, if given."""

    def __init__(self, vanishing=None):
        self.vanishing, self.opened = vanishing, []

    def stat(self, path):
        found = Path(path).stat()
        if self.vanishing:
            self.vanishing.unlink()
        return found

    def open(self, path, how):
        self.opened.append(how)
        return Written(Path(path).open(how))


class Written:
    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def set_pipelined(self, _):
        pass

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_bytes(bytes(range(256)) * 400)
    return path


@every_row(("there", "how"), [(None, "wb"), (0, "r+b"), (70_000, "r+b"), (102_400, "r+b"), (102_401, "wb")])
def test_a_copy_goes_on_or_begins_again(tmp_path, source, there, how):
    target, sftp, told = tmp_path / "target", Sftp(), []
    if there is not None:
        target.write_bytes((source.read_bytes() + b"?")[:there])
    with source.open("rb") as reading:
        _continue(sftp, reading, str(target), lambda done, total: told.append((done, total)))
    assert target.read_bytes() == source.read_bytes()
    assert sftp.opened == [how]
    assert (told[0][0], told[-1]) == ((there if how == "r+b" else 0), (102_400, 102_400))


def test_a_source_that_vanishes_meanwhile_is_sent_to_its_end(tmp_path, source):
    content, target = source.read_bytes(), tmp_path / "target"
    target.write_bytes(content[:1000])
    sftp = Sftp(vanishing=source)
    with source.open("rb") as reading:
        _continue(sftp, reading, str(target), lambda *_: None)
    assert (target.read_bytes(), sftp.opened) == (content, ["r+b"])


def test_a_target_that_vanishes_meanwhile_is_begun_again(tmp_path, source):
    target = tmp_path / "target"
    target.write_bytes(source.read_bytes()[:1000])
    sftp = Sftp(vanishing=target)
    with source.open("rb") as reading:
        _continue(sftp, reading, str(target), lambda *_: None)
    assert (target.read_bytes(), sftp.opened) == (source.read_bytes(), ["r+b", "wb"])


def test_a_source_that_is_not_there_is_told_before_anything_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.run.remote.ssh.connect", lambda *_: None)
    with pytest.raises(FileNotFoundError) as told:
        SshRunner("far").send(tmp_path / "absent", "/work/it")
    assert told.value.filename == str(tmp_path / "absent")


def test_a_file_is_written_by_a_number_that_has_no_name(monkeypatch):
    def nameless():
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert _part_name("/work/it") == f"/work/.it.54321.{os.getpid()}.part"


def refused():
    return NoValidConnectionsError({("127.0.0.1", 1): ConnectionRefusedError(111, "Connection refused")})


@every_row(
    ("error", "said"),
    [
        (refused(), "Connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (TimeoutError("timed out"), "timed out"),
        (TimeoutError(110, "Connection timed out"), "Connection timed out"),
        (
            SSHException("Error reading SSH protocol banner[Errno 104] Connection reset by peer"),
            "Error reading SSH protocol banner: Connection reset by peer",
        ),
        (EOFError(), "the connection ended"),
        (OSError(), "OSError"),
    ],
)
def test_what_a_connection_fails_of_is_told_without_what_python_calls_it(error, said):
    assert why(error) == said


@every_row("error", [EOFError, ConnectionResetError], ids=lambda error: error.__name__)
def test_a_connection_that_ends_while_it_is_given_up_raises_in_no_thread(monkeypatch, error):
    raised, closed = [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", raised.append)
    monkeypatch.setattr(ssh, "_ANSWER_SECONDS", 0.0)

    def close():
        closed.set()
        raise error

    with ssh._time_limit(close):
        assert closed.wait(20)
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join(20)
    assert raised == []
