"""Test the conditions under which a virtual cluster counts as working."""

from tests.unit.tables import every_row
from toolkit.cluster.health import node_states, takes_jobs
from toolkit.cluster.plan import Layout

LAYOUT = Layout("demo", 2, 1, 1 << 30)


def test_states_are_read_by_node():
    assert node_states("node1 idle\nnode2 down*\n\n") == {"node1": "idle", "node2": "down*"}


@every_row("state", ["idle", "mixed", "allocated", "completing", "planned"])
def test_nodes_that_are_at_work_are_well(state):
    assert takes_jobs(LAYOUT, {"node1": "idle", "node2": state})


@every_row("state", ["idle*", "down", "down*", "drained", "unknown", "idle~"])
def test_a_node_that_takes_no_jobs_is_not(state):
    assert not takes_jobs(LAYOUT, {"node1": "idle", "node2": state})


def test_a_node_that_slurm_does_not_know_is_not():
    assert not takes_jobs(LAYOUT, {"node1": "idle"})
