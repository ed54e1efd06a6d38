"""The line that SSH carries in place of words."""

import getpass
import os
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import BadInput
from toolkit.run.command import Command
from toolkit.run.ssh import SshRunner, _beside, shell_line

WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(WORD, min_size=1))
def test_the_far_shell_reads_the_same_words(words):
    assert shlex.split(shell_line(Command(tuple(words)))) == words


@given(WORD.filter(bool))
def test_values_and_folders_cannot_break_out(text):
    line = shell_line(Command(("x",), env={"A": text}, cwd=text))
    assert shlex.split(line) == ["cd", "--", text, "&&", "env", f"A={text}", "x"]


@pytest.mark.parametrize("host", ["", "-oProxyCommand=id", "two words", "a\nb"])
def test_what_is_no_destination_is_refused_before_anything_is_asked(host):
    with pytest.raises(BadInput, match="not an SSH destination"):
        SshRunner(host)


@pytest.mark.parametrize("port", ["99999", "65536", "0", "abc", "", "-1", "+22", "²"])
@pytest.mark.parametrize("who", ["", "ada@"])
def test_a_port_that_is_none_is_refused_before_anything_is_asked(who, port):
    with pytest.raises(BadInput) as caught:
        SshRunner(f"{who}localhost:{port}")
    assert caught.value.message == f"--host {who}localhost:{port}: {port!r} is no port; ports are 1 to 65535"


def test_a_port_of_the_configuration_that_is_none_is_refused_with_its_file(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host far\n    HostName 127.0.0.1\n    Port 99999\n")
    with pytest.raises(BadInput, match=f"{config}: far: 99999 is no port"):
        SshRunner("far", config)


def test_a_file_is_written_by_a_number_that_has_no_name(monkeypatch):
    def nameless():
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert _beside("/work/it") == f"/work/.it.54321.{os.getpid()}.part"
