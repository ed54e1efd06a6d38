"""Test how a rank finds the node of rank 0 in the variables of Slurm and mpirun."""

import pytest

from tests.unit.tables import every_row
from toolkit.trainers import rendezvous
from toolkit.trainers.ranks.peers import find_place
from toolkit.trainers.trouble import Trouble

SRUN = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "rack[01-02]n[3,5],gpu7",
    "SLURM_JOB_NODELIST": "login1,rack[01-02]n[3,5],gpu7",
    "SLURMD_NODENAME": "rack02n5",
    "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.9",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "PMIX_NAMESPACE": "1601961985",
}


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    found = []
    monkeypatch.setattr(rendezvous, "secret_of", lambda _, run, **how: found.append((run, how)) or b"s" * 64)
    return found


def test_the_secret_is_that_of_the_run_and_rank_0_may_make_it(asked):
    place = find_place(SRUN, "ps")
    find_place(SRUN | {"SLURM_PROCID": "0", "SLURMD_NODENAME": "rack01n3"}, "ps")
    find_place(MPIRUN, "ps")
    assert place.secret == b"s" * 64
    assert [(how["first"], how["alone"]) for _, how in asked] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    assert asked[0][0] == asked[1][0] == place.run


def test_on_the_first_node_of_several_it_listens_at_the_address_of_slurm(monkeypatch):
    monkeypatch.setattr(rendezvous, "interfaces", lambda: [("lo", "127.0.0.1"), ("ib0", "10.0.0.9")])
    place = find_place(SRUN | {"SLURMD_NODENAME": "rack01n3"}, "ps")
    assert (place.listen_address, place.hosts) == ("10.0.0.9", ("10.0.0.9", "127.0.0.1"))
    assert find_place(MPIRUN, "ps").listen_address == "127.0.0.1"


def test_under_srun_it_is_on_the_first_node_of_the_step():
    place = find_place(SRUN, "multiworker")
    assert (place.rank, place.size, place.host) == (3, 4, "rack02n5")
    assert place.hosts == ("rack01n3", "10.0.0.9")


def test_on_its_own_node_no_name_is_looked_up():
    assert find_place(SRUN | {"SLURMD_NODENAME": "rack01n3"}, "ps").hosts == ("127.0.0.1",)


def test_ranks_of_one_run_look_at_the_same_ports_and_other_runs_at_others():
    places = [find_place(SRUN | {"SLURM_PROCID": str(rank)}, "ps") for rank in range(4)]
    assert len({place.run for place in places}) == 1
    assert len({tuple(place.ports) for place in places}) == 1
    other = find_place(SRUN | {"SLURM_STEP_ID": "1"}, "ps")
    again = find_place(SRUN | {"SLURM_RESTART_COUNT": "1"}, "ps")
    assert len({places[0].run, other.run, again.run}) == 3
    assert other.ports != places[0].ports


def test_under_mpirun_on_one_node_it_is_here():
    assert find_place(MPIRUN, "multiworker").hosts == ("127.0.0.1",)


def test_under_mpirun_in_a_job_of_slurm_it_is_on_the_first_node_of_the_job_whatever_the_step_of_a_daemon():
    inside = SRUN | MPIRUN | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    place = find_place(inside, "multiworker")
    assert (place.rank, place.hosts[0]) == (1, "login1")
    beside = find_place({**inside, "SLURM_STEP_ID": "4294967290"}, "multiworker")
    assert beside.run == place.run


def test_it_can_be_told():
    assert find_place(MPIRUN | {"TOOLKIT_ROOT": "node5"}, "ps").hosts == ("node5",)


@every_row(
    ("environment", "said"),
    [
        ({}, "--strategy multiworker: cannot find the other ranks, because no launcher set the rank of this"),
        (
            MPIRUN | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
            "variable TOOLKIT_ROOT to the host name of rank 0's node",
        ),
        ({"PMIX_RANK": "2"}, "rank 2 (counted from 0), but number of ranks 1; start all ranks with one srun"),
        (SRUN | {"SLURM_STEP_NODELIST": "[["}, "is not a list of nodes"),
    ],
)
def test_a_rank_that_cannot_know_its_peers_says_so(environment, said):
    with pytest.raises(Trouble) as told:
        find_place(environment, "multiworker")
    assert said in told.value.message
