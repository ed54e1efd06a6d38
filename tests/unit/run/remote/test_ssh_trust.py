"""Test which SSH hosts toolkit trusts, with a real SSH server on this machine."""

import base64
import contextlib
import hashlib
import socket
import threading
import time
from types import SimpleNamespace

import paramiko
import pytest

from tests.unit.tables import every_row
from toolkit.errors import Lost, Missing
from toolkit.run.command import Command
from toolkit.run.remote.ssh import SshRunner
from toolkit.run.remote.ssh_shared import SharedRunner


class Login(paramiko.ServerInterface):
    def __init__(self, server):
        self.server = server

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        self.server.tried += 1
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        if self.server.hangs:
            self.server.over.wait(10)
            return False
        threading.Thread(target=self._end, args=(channel,), daemon=True).start()
        return True

    @staticmethod
    def _end(channel):
        time.sleep(0.05)  # paramiko sends the answer to the request first
        with contextlib.suppress(paramiko.SSHException, OSError, EOFError):
            channel.send_exit_status(0)
            channel.close()


class Server:
    def __init__(self, *keys):
        self.keys, self.tried, self.hangs = keys, 0, False
        self.over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._transports = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                transport = paramiko.Transport(connection)
                self._transports.append(transport)
                for key in self.keys:
                    transport.add_server_key(key)
                transport.start_server(event=threading.Event(), server=Login(self))

    def close(self):
        self.over.set()
        for transport in self._transports:
            transport.close()
            transport.join(5)
        self._listening.close()


ECDSA, OTHER = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
RSA = paramiko.RSAKey.generate(2048)


def fingerprint(key):
    return "SHA256:" + base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")


@pytest.fixture
def there(tmp_path):
    server = Server(ECDSA)
    known, config = tmp_path / "known_hosts", tmp_path / "config"
    known.touch()
    paramiko.ECDSAKey.generate().write_private_key_file(tmp_path / "id")
    config.write_text(
        f'Host *\n    UserKnownHostsFile "{known}"\n    GlobalKnownHostsFile /dev/null\n'
        f'    IdentityFile "{tmp_path}/id"\n    IdentitiesOnly yes\n'
    )
    host = f"ada@127.0.0.1:{server.port}"

    def connect():
        runner = SshRunner(host, config)
        try:
            return runner.run(Command.of("true", timeout=10)).status
        finally:
            runner.close()

    def refused():
        tried = server.tried
        with pytest.raises(Missing) as caught:
            connect()
        assert server.tried == tried  # toolkit offered no user key
        return caught.value

    yield SimpleNamespace(
        server=server,
        known=known,
        config=config,
        connect=connect,
        refused=refused,
        name=f"[127.0.0.1]:{server.port}",
    )
    server.close()


def line(names, key):
    return f"{names} {key.get_name()} {key.get_base64()}\n"


def test_an_unknown_host_is_told_with_its_fingerprint_and_a_command_that_works(there):
    told = there.refused()
    port = there.server.port
    assert told.message == (
        f"127.0.0.1 port {port}: unknown host; its key ECDSA {fingerprint(ECDSA)} is not in {there.known}"
    )
    assert f"compare {fingerprint(ECDSA)} with the fingerprint that the operators publish" in told.fix
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ecdsa_key.pub" in told.fix
    assert told.fix.endswith(f"then: ssh -F {there.config} -p {port} ada@127.0.0.1 true")
    assert "ssh-keyscan" not in told.fix


def test_the_command_asks_also_where_the_configuration_forbids_to_ask(there):
    there.config.write_text(there.config.read_text() + "    StrictHostKeyChecking yes\n")
    port = there.server.port
    assert there.refused().fix.endswith(
        f"ssh -F {there.config} -o StrictHostKeyChecking=ask -p {port} ada@127.0.0.1 true"
    )


def test_a_revoked_key_is_refused_as_revoked_and_never_added(there):
    there.known.write_text(line(there.name, ECDSA) + "@revoked " + line("*", ECDSA))
    told = there.refused()
    assert f"ECDSA {fingerprint(ECDSA)} is revoked in {there.known}:2" in told.message
    assert "then: ssh" not in told.fix


@every_row("order", [(ECDSA, OTHER), (OTHER, ECDSA)])
def test_of_two_keys_of_one_kind_each_is_accepted(there, order):
    there.known.write_text("".join(line(there.name, key) for key in order))
    assert there.connect() == 0


@every_row("names", ["[127.0.0.*]:{port}", "*", "*,!other", "127.0.0.1", "[127.0.0.?]:{port},x"])
def test_patterns_are_understood(there, names):
    there.known.write_text(line(names.format(port=there.server.port), ECDSA))
    assert there.connect() == 0


def test_a_negated_pattern_is_understood(there):
    there.known.write_text(line(f"*,![127.0.0.1]:{there.server.port},!127.0.0.1", ECDSA))
    assert "unknown host" in there.refused().message


def test_a_certificate_authority_is_named_as_what_it_is(there):
    there.known.write_text("@cert-authority " + line("*", OTHER))
    told = there.refused()
    assert f"{there.known}:1 trusts a certificate authority for this host" in told.message
    assert "toolkit's own SSH client does not read host certificates" in told.message
    assert "ControlMaster" in told.fix


def test_a_changed_key_is_told_with_its_line_and_both_fingerprints(there):
    there.known.write_text("\n" + line(there.name, OTHER))
    told = there.refused()
    assert (
        f"its host key is ECDSA {fingerprint(ECDSA)}, but {there.known}:2 has ECDSA {fingerprint(OTHER)};"
        " this may be an attack"
    ) in told.message
    assert f"ssh-keygen -f {there.known} -R '{there.name}'" in told.fix


def test_a_changed_key_of_a_pattern_is_removed_by_hand(there):
    there.known.write_text(line("*", OTHER) + line("x", RSA))
    assert f"unknown host key ECDSA {fingerprint(ECDSA)}" not in there.refused().message
    assert f"remove {there.known}:1" in there.refused().fix


def test_a_kind_of_key_that_is_not_known_is_told_apart_from_a_changed_key(there):
    there.known.write_text(line(there.name, RSA))
    told = there.refused()
    assert f"{there.known}:1 has RSA {fingerprint(RSA)}, which the host does not offer" in told.message


def test_a_host_with_several_kinds_is_asked_for_the_known_one(there):
    there.server.keys = (ECDSA, RSA)
    there.known.write_text(line(there.name, RSA))
    assert there.connect() == 0


def test_a_host_key_alias_is_the_name_that_counts(there):
    there.config.write_text(there.config.read_text() + "    HostKeyAlias cluster\n")
    there.known.write_text(line("cluster", ECDSA))
    assert there.connect() == 0


def test_a_login_that_fails_names_a_command_that_works(there, monkeypatch):
    there.known.write_text(line(there.name, ECDSA))
    monkeypatch.setattr(Login, "check_auth_publickey", lambda *_: paramiko.AUTH_FAILED)
    with pytest.raises(Missing, match="was refused") as caught:
        there.connect()
    assert caught.value.fix == (
        f"check that this command works: ssh -F {there.config} -p {there.server.port} ada@127.0.0.1 true"
    )


def test_a_shared_connection_is_opened_by_a_command_that_works():
    assert SharedRunner("ada@h:2222", None, "s")._login == "ssh -p 2222 ada@h"


def test_a_host_that_never_begins_a_command_is_given_up(there, monkeypatch):
    monkeypatch.setattr("toolkit.run.remote.ssh._ANSWER_SECONDS", 0.5)
    there.known.write_text(line(there.name, ECDSA))
    there.server.hangs = True
    with pytest.raises(Lost, match="cannot run true"):
        there.connect()


@pytest.mark.timeout(30)
def test_a_host_that_sends_its_banner_a_byte_at_a_time_is_given_up(there, monkeypatch):
    monkeypatch.setattr("toolkit.run.remote.ssh_connect._SECONDS", 1)
    listening = socket.create_server(("127.0.0.1", 0))

    def trickle():
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            while True:
                connection.sendall(b"x")
                time.sleep(0.05)

    threading.Thread(target=trickle, daemon=True).start()
    with listening, pytest.raises(Lost, match="SSH failed: no answer in time"):
        SshRunner(f"ada@127.0.0.1:{listening.getsockname()[1]}", there.config)
