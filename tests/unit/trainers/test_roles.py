"""Test the role of each rank in a job with parameter servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.trainers.ranks.roles import Role, cluster, roles
from toolkit.trainers.trouble import Trouble


@given(st.integers(3, 300), st.integers(0, 100))
def test_there_is_one_coordinator_and_all_others_serve_or_work(ranks, servers):
    if servers > ranks - 2:
        with pytest.raises(Trouble, match=f"--servers {servers}: too many servers for {ranks} ranks"):
            roles(ranks, servers)
        return
    found = roles(ranks, servers)
    kinds = [role.kind for role in found]
    assert len(found) == ranks
    assert kinds[0] == "chief"
    assert kinds.count("chief") == 1
    assert kinds.count("ps") == (servers or max(1, ranks // 4))
    for kind in ("ps", "worker"):
        assert [role.number for role in found if role.kind == kind] == list(range(kinds.count(kind)))


@every_row("ranks", [1, 2])
def test_fewer_than_three_ranks_are_too_few(ranks):
    with pytest.raises(Trouble, match=f"needs at least 3 ranks.* the job has {ranks}"):
        roles(ranks)


def test_a_cluster_has_the_addresses_of_each_kind_in_their_order():
    found = cluster([Role("chief", 0), Role("ps", 0), Role("worker", 0), Role("worker", 1)], list("abcd"))
    assert found == {"chief": ["a"], "ps": ["b"], "worker": ["c", "d"]}
