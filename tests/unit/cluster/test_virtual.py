"""Test the stored state of a virtual cluster between two commands, without a Docker engine."""

import pytest

from tests.unit.tables import every_row
from toolkit.cluster.access import Access, new_secrets, with_accounts
from toolkit.cluster.plan import LISTEN
from toolkit.cluster.virtual import _listen, _secrets
from toolkit.errors import BadInput, Missing
from toolkit.run.docker.nodes import NodeContainer


@pytest.fixture(autouse=True)
def access(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Access("demo")


def test_a_new_cluster_has_the_users_that_are_asked_for(access):
    assert len(_secrets("demo", 3, existed=False).accounts) == 3
    assert access.accounts == ("user01", "user02", "user03")


def test_users_are_added_to_a_cluster_that_is_there_and_stay(access):
    access.keep(with_accounts(new_secrets(), 2))
    before = access.secrets().accounts
    assert _secrets("demo", None, existed=True).accounts == before
    after = _secrets("demo", 4, existed=True)
    assert after.accounts[:2] == before
    assert access.secrets() == after
    assert access.accounts[-1] == "user04"


@every_row("users", [0, 1])
def test_users_are_never_taken_away(access, users):
    access.keep(with_accounts(new_secrets(), 2))
    with pytest.raises(BadInput, match=f"has 2 users, not {users}: toolkit adds accounts") as caught:
        _secrets("demo", users, existed=True)
    assert "toolkit cluster down --name demo" in caught.value.fix


def test_a_number_of_users_that_cannot_be_leaves_nothing(access):
    with pytest.raises(BadInput, match="0 to 99 users"):
        _secrets("demo", 100, existed=False)
    assert not access.folder.exists()


def test_a_cluster_of_somebody_else_gets_no_users(access):
    with pytest.raises(Missing, match="another user created the cluster"):
        _secrets("demo", 2, existed=True)


def test_where_a_cluster_listens_is_read_from_its_labels():
    def found(labels):
        return {"x": NodeContainer(name="x", state="running", labels=labels, ports={})}

    assert _listen(found({LISTEN: "192.168.1.10:2222"})) == "192.168.1.10:2222"
    assert _listen(found({})) == ""
