"""Test the folder with a cluster's keys and settings on this machine."""

import paramiko
import pytest

from tests.unit.tables import every_row
from toolkit.cluster.access import Access, known_hosts, new_secrets, ssh_config, with_accounts
from toolkit.errors import BadInput


@pytest.fixture
def access(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a folder"))
    return Access("demo")


def test_no_two_clusters_have_a_key_in_common():
    one, two = new_secrets(), new_secrets()
    assert one.munge != two.munge
    assert len({s.user_private for s in (one, two)} | {s.host_private for s in (one, two)}) == 4


def test_secrets_come_back_as_they_were_kept_and_are_nobody_elses(access):
    assert access.secrets() is None
    secrets = new_secrets()
    access.keep(secrets)
    assert access.secrets() == secrets
    assert access.folder.stat().st_mode & 0o077 == 0
    assert [f.stat().st_mode & 0o077 for f in access.folder.iterdir()] == [0, 0]


@every_row("content", [b"", b"{", b"\xff\xfe", b"{}", b'{"munge": 3}'])
def test_damaged_keys_are_named_with_what_makes_new_ones(access, content):
    access.keep(new_secrets())
    (access.folder / "secrets.json").write_bytes(content)
    with pytest.raises(BadInput) as caught:
        access.secrets()
    assert caught.value.message.startswith(f"{access.folder}/secrets.json: the keys of the cluster demo are")
    assert caught.value.fix.startswith("create the cluster again: `toolkit cluster down --name demo`")


def test_the_key_on_disk_is_the_one_that_the_login_node_lets_in(access):
    secrets = new_secrets()
    access.keep(secrets)
    key = paramiko.ECDSAKey.from_private_key_file(str(access.folder / "id_ecdsa"))
    assert f"{key.get_name()} {key.get_base64()}" == secrets.user_public


def test_the_files_follow_the_port_and_stay_alone_when_they_are_right(access):
    access.keep(new_secrets())
    access.point_at(2201, 2)
    first = access.ssh_config.stat().st_ino
    access.point_at(2201, 2)
    assert access.ssh_config.stat().st_ino == first
    access.point_at(2202, 2)
    assert "Port 2202" in access.ssh_config.read_text()
    assert (access.folder / "known_hosts").read_text().startswith("[127.0.0.1]:2202,login,node1,node2 ")


def test_a_folder_is_forgotten_once(access):
    access.keep(new_secrets())
    assert access.forget()
    assert not access.folder.exists()
    assert not access.forget()


def test_ssh_trusts_the_clusters_key_and_no_other(access):
    settings = paramiko.SSHConfig.from_text(ssh_config(str(access.folder), 2201, 2))
    login, node = settings.lookup("login"), settings.lookup("node2")
    assert (login["hostname"], login["port"], login["user"]) == ("127.0.0.1", "2201", "ada")
    assert (node["proxyjump"], "proxyjump" in login) == ("login", False)
    for host in (login, node):
        assert host["stricthostkeychecking"] == "yes"
        assert host["userknownhostsfile"] == str(access.folder / "known_hosts")
        assert host["globalknownhostsfile"] == "/dev/null"
        assert host["identityfile"] == [str(access.folder / "id_ecdsa")]


def test_the_usual_port_is_written_without_brackets():
    assert known_hosts("t k", 22, 1) == "127.0.0.1,login,node1 t k\n"


def test_accounts_are_added_and_keep_their_keys():
    three = with_accounts(new_secrets(), 3)
    five = with_accounts(three, 5)
    assert list(five.by_account()) == ["user01", "user02", "user03", "user04", "user05"]
    assert five.accounts[:3] == three.accounts
    assert len({keys.private for keys in five.accounts} | {five.user_private}) == 6
    assert with_accounts(five, 5) == five


def test_keys_that_an_earlier_toolkit_wrote_have_no_accounts(access):
    access.keep(new_secrets())
    written = access.folder / "secrets.json"
    written.write_text(written.read_text().replace(',"accounts":[]', ""))
    assert access.secrets().accounts == ()
    assert access.accounts == ()


def test_the_folder_of_an_account_is_all_that_its_owner_needs_and_is_shut(access):
    secrets = with_accounts(new_secrets(), 2)
    access.keep(secrets)
    access.point_at(2222, 2, "192.168.1.10")
    assert access.accounts == ("user01", "user02")
    folder = access.folder / "users" / "user02"
    assert {file.name for file in folder.iterdir()} == {"id_ecdsa", "known_hosts", "ssh_config", "config"}
    assert [p.stat().st_mode & 0o077 for p in (folder, folder / "id_ecdsa")] == [0, 0]
    key = paramiko.ECDSAKey.from_private_key_file(str(folder / "id_ecdsa"))
    assert f"{key.get_name()} {key.get_base64()}" == secrets.accounts[1].public
    assert (folder / "known_hosts").read_text().startswith("[192.168.1.10]:2222,login,node1,node2 ")
    written = "".join(file.read_text() for file in folder.iterdir())
    assert secrets.user_private not in written
    assert secrets.host_private not in written
    assert secrets.accounts[0].private not in written


def test_ssh_is_told_of_the_account_here_and_where_the_folder_is_handed_out_to(access):
    access.keep(with_accounts(new_secrets(), 1))
    access.point_at(2222, 1, "192.168.1.10")
    folder = access.folder / "users" / "user01"
    here, there = (
        paramiko.SSHConfig.from_path(str(folder / name)).lookup("login") for name in ("ssh_config", "config")
    )
    for login in (here, there):
        assert (login["hostname"], login["port"], login["user"]) == ("192.168.1.10", "2222", "user01")
    assert here["identityfile"] == [str(folder / "id_ecdsa")]
    assert there["userknownhostsfile"] == "~/.ssh/toolkit-demo/known_hosts"
    assert [f.endswith("/.ssh/toolkit-demo/id_ecdsa") for f in there["identityfile"]] == [True]
