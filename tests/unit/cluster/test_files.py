"""Test the configuration files of a virtual cluster's nodes."""

import io
import tarfile

from tests.unit.tables import every_row
from toolkit.cluster.access import new_secrets, with_accounts
from toolkit.cluster.files import (
    CODE,
    MAKE_ACCOUNTS,
    accounts_archive,
    code_archive,
    code_files,
    code_folder,
    setup_archive,
)
from toolkit.cluster.plan import Layout

LAYOUT = Layout("demo", 2, cpus=4, memory=16 << 30)
SECRETS = new_secrets()


def entries(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {m.name: (m, tar.extractfile(m).read() if m.isfile() else b"") for m in tar.getmembers()}


def test_every_secret_is_roots_alone():
    given = entries(setup_archive(LAYOUT, "login", SECRETS))
    secret = {name for name, (member, _) in given.items() if member.mode == 0o600}
    assert secret == {name for name in given if name.startswith("etc/toolkit/")}
    assert given["etc/toolkit/munge.key"][1] == SECRETS.munge


def test_only_the_login_node_gets_the_users_key():
    assert "etc/toolkit/id_ecdsa" in entries(setup_archive(LAYOUT, "login", SECRETS))
    assert "etc/toolkit/id_ecdsa" not in entries(setup_archive(LAYOUT, "node1", SECRETS))


def test_nodes_know_each_others_key():
    known = entries(setup_archive(LAYOUT, "node1", SECRETS))["etc/ssh/ssh_known_hosts"][1]
    assert known.decode() == f"login,node1,node2 {SECRETS.host_public}\n"


@every_row(
    "line",
    [
        "ClusterName=demo",
        "MpiDefault=pmix",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "UnkillableStepTimeout=300",
        "NodeName=node[1-2] CPUs=4 RealMemory=5888 State=UNKNOWN",
    ],
)
def test_slurm_is_configured(line):
    written = entries(setup_archive(LAYOUT, "node1", SECRETS))["etc/slurm/slurm.conf"][1].decode()
    assert line in written.splitlines()


def test_the_code_of_the_node_is_this_package_with_its_data():
    code = code_files()
    assert {"cli/main.py", "_data/containers/cluster/slurm.conf.j2", "py.typed"} <= code.keys()
    assert not [path for path in code if "__pycache__" in path]


def test_code_lies_under_its_own_name_and_a_link_points_there():
    code = {"a.py": b"1"}
    given = entries(code_archive(code))
    folder = code_folder(code)
    assert given[f"{folder[1:]}/toolkit/a.py"][1] == b"1"
    assert given["opt/toolkit/lib"][0].linkname == folder


def test_the_name_of_code_changes_with_each_byte_and_name():
    folders = {
        code_folder(c) for c in ({"a": b"1"}, {"a": b"2"}, {"b": b"1"}, {"a": b"1", "b": b""}, {"a1": b""})
    }
    assert len(folders) == 5


def test_all_nodes_learn_the_accounts_and_the_login_node_alone_their_keys():
    secrets = with_accounts(SECRETS, 2)
    login, node = (entries(accounts_archive(host, secrets)) for host in ("login", "node1"))
    assert node.keys() == {"etc/toolkit/accounts/names"}
    assert node["etc/toolkit/accounts/names"][1] == b"user01\nuser02\n"
    assert login["etc/toolkit/accounts/user02/id_ecdsa"][1].decode() == secrets.accounts[1].private
    assert login["etc/toolkit/accounts/user02/id_ecdsa.pub"][1].decode() == f"{secrets.accounts[1].public}\n"
    assert {member.mode for member, _ in (*login.values(), *node.values())} == {0o600}


def test_without_a_class_there_are_no_names():
    assert entries(accounts_archive("login", SECRETS))["etc/toolkit/accounts/names"][1] == b""


def test_the_program_that_makes_accounts_comes_with_the_code():
    assert MAKE_ACCOUNTS.removeprefix(f"{CODE}/toolkit/") in code_files()
