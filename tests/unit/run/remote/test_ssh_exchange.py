"""Test that no output of a command is lost on an SSH channel, with a real SSH server in this process."""

import socket
import threading

import paramiko
import pytest

from toolkit.run.command import Command
from toolkit.run.remote import ssh_exchange
from toolkit.run.remote.ssh_exchange import exchange


class Server(paramiko.ServerInterface):
    """An SSH server that sends a command's exit status before the output ``late``, as sshd may.

    If ``ends`` is false, a background process of the command keeps the output open.
    """

    def __init__(self, late, *, ends):
        self.late, self.ends, self.silent = late, ends, threading.Event()

    def check_auth_none(self, username):
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=self._answer, args=(channel,), daemon=True).start()
        return True

    def _answer(self, channel):
        channel.sendall(b"first\n")
        channel.send_exit_status(3)
        self.silent.wait(0.1)  # longer than the client needs to see the exit status
        channel.sendall(self.late)
        if self.ends:
            channel.shutdown_write()
            channel.close()


@pytest.fixture
def run():
    opened = []

    def call(late, *, ends=True):
        ours, theirs = socket.socketpair()
        server = paramiko.Transport(theirs)
        server.add_server_key(paramiko.RSAKey.generate(2048))
        server.start_server(threading.Event(), Server(late, ends=ends))  # do not wait for the client
        client = paramiko.Transport(ours)
        opened.extend((client, server, ours, theirs))
        client.start_client(timeout=20)
        client.auth_none("ada")
        channel = client.open_session(timeout=20)
        channel.exec_command("cat")
        return exchange(channel, Command.of("cat", timeout=20), lambda line: None)

    yield call
    for part in opened:
        part.close()


def test_output_that_arrives_after_the_exit_status_is_kept(run):
    done = run(b"last\n")
    assert (done.status, done.stdout) == (3, b"first\nlast\n")


def test_a_background_process_that_keeps_the_output_open_is_not_waited_for(run, monkeypatch):
    monkeypatch.setattr(ssh_exchange, "_DRAIN_SECONDS", 0.3)
    done = run(b"", ends=False)
    assert (done.status, done.stdout) == (3, b"first\n")
