"""Test the role of each task in a job with parameter servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.trainers.ranks.roles import Role, cluster, roles
from toolkit.trainers.trouble import Trouble


@given(st.integers(3, 300), st.integers(0, 100))
def test_there_is_one_coordinator_and_all_others_serve_or_work(tasks, servers):
    if servers > tasks - 2:
        with pytest.raises(Trouble, match=f"--servers {servers}: no worker is left of {tasks} tasks"):
            roles(tasks, servers)
        return
    found = roles(tasks, servers)
    kinds = [role.kind for role in found]
    assert len(found) == tasks
    assert kinds[0] == "chief"
    assert kinds.count("chief") == 1
    assert kinds.count("ps") == (servers or max(1, tasks // 4))
    for kind in ("ps", "worker"):
        assert [role.number for role in found if role.kind == kind] == list(range(kinds.count(kind)))


@every_row("tasks", [1, 2])
def test_fewer_than_three_tasks_are_too_few(tasks):
    with pytest.raises(Trouble, match=f"needs at least 3 tasks.* the job has {tasks}"):
        roles(tasks)


def test_a_cluster_has_the_addresses_of_each_kind_in_their_order():
    found = cluster([Role("chief", 0), Role("ps", 0), Role("worker", 0), Role("worker", 1)], list("abcd"))
    assert found == {"chief": ["a"], "ps": ["b"], "worker": ["c", "d"]}
