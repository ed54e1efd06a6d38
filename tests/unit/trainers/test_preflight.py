from tests.unit.tables import every_row
from toolkit.trainers import preflight
from toolkit.trainers.checks.node import Facts
from toolkit.trainers.checks.verdict import PreflightVerdict
from toolkit.trainers.checks.wanted import Requirements
from toolkit.trainers.preflight import library_name


@every_row(
    ("told", "name"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4\0", "Open MPI 4.1.4"),
        ("MPICH Version:      4.0.2\nMPICH Release date: Thu Apr  7\n", "MPICH 4.0.2"),
        ("Intel(R) MPI Library 2021.9 for Linux* OS\n", "Intel(R) MPI Library 2021.9 for Linux* OS"),
    ],
)
def test_a_library_is_named_with_its_version_only(told, name):
    assert library_name(told) == name


class Broken:
    """A fake communicator of a faulty MPI, which no MPI on this machine can produce."""

    def __init__(self, ranks, total, rank=0):
        self._ranks, self._total, self._rank = ranks, total, rank

    def Get_rank(self):  # noqa: N802 - mpi4py's name
        return self._rank

    def Get_size(self):  # noqa: N802 - mpi4py's name
        return len(self._ranks)

    def allgather(self, _):
        return self._ranks

    def Allreduce(self, _, received):  # noqa: N802 - mpi4py's name
        for i in range(len(received)):
            received[i] = self._total

    def allreduce(self, wrong):
        return wrong


def test_right_numbers_pass():
    assert preflight.check_messages(Broken([1, 0], 3.0)) == ""


def test_two_ranks_of_one_number_are_noticed():
    assert "two processes the same rank" in preflight.check_messages(Broken([0, 0], 3.0))


def test_a_wrong_sum_is_noticed():
    assert "messages are lost or damaged" in preflight.check_messages(Broken([0, 1], 2.0))


def test_a_rank_that_is_alone_says_so_and_what_to_do():
    sentence = preflight._wrong_size(1, 2)
    assert sentence.startswith(
        "MPI reports a world of 1 where 2 tasks were started: each rank is a world of size 1"
    )
    assert "toolkit doctor" in sentence


def test_a_world_of_another_size_is_told_with_both_numbers():
    assert "a world of 3 where 4 tasks" in preflight._wrong_size(3, 4)


def test_only_the_first_process_speaks(monkeypatch, capsys):
    monkeypatch.setattr(preflight, "_TIME_TO_SPEAK", 0.0)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    assert preflight._fail("something is wrong") == 1
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    assert preflight._fail("something is wrong") == 1
    assert capsys.readouterr().err == "preflight: something is wrong.\n"


def told(capsys, verdict):
    code = preflight._tell(verdict, Requirements(tasks=4), "Open MPI 4.1.4", 0.0)
    return code, *capsys.readouterr()


def test_what_is_well_is_one_line_with_the_slowest_speed(capsys):
    code, out, err = told(capsys, PreflightVerdict(nodes=2, slowest=9.41))
    assert (code, err) == (0, "")
    assert out.startswith(
        "preflight: 4 ranks on 2 nodes, Open MPI 4.1.4; messages arrive, 9.4 Gbit/s from node to node ("
    )


def test_a_warning_is_told_and_ends_nothing(capsys):
    code, out, err = told(capsys, PreflightVerdict(warnings=("rank 2 on n2: slow",), nodes=2))
    assert (code, err) == (0, "preflight: warning: rank 2 on n2: slow.\n")
    assert "4 ranks on 2 nodes" in out


def test_of_many_failures_the_first_are_told_and_the_rest_counted(capsys):
    code, out, err = told(
        capsys, PreflightVerdict(tuple(f"rank {n} on n{n}: no" for n in range(2000)), nodes=2000)
    )
    assert (code, out) == (1, "")
    assert err.splitlines()[0] == "preflight: rank 0 on n0: no."
    assert err.splitlines()[5] == "preflight: and 1995 more faults."
    assert len(err.splitlines()) == 6


class Ranks:
    """A fake world of three ranks on two nodes, seen by rank 0; the clock of another rank is late."""

    def __init__(self, facts):
        self._facts = facts
        self.split = None

    def Get_rank(self):  # noqa: N802 - mpi4py's name
        return 0

    def Get_size(self):  # noqa: N802 - mpi4py's name
        return 1

    def Barrier(self):  # noqa: N802 - mpi4py's name
        pass

    def Free(self):  # noqa: N802 - mpi4py's name
        pass

    def Split(self, colour, key):  # noqa: N802 - mpi4py's name
        self.split = (colour, key)
        return self

    def allgather(self, host):
        return [host, host, "n2"]

    def gather(self, own):
        return [own, *self._facts]

    def bcast(self, value):
        return value


def test_the_first_rank_of_each_node_looks_at_it_and_rank_0_judges(tmp_path):
    gib = 2**30
    there = Facts(2, "n2", first=True, output=gib, tmp=gib, ahead=-120.0)
    ranks = Ranks([Facts(1, "n1"), there])
    verdict = preflight.check_nodes(ranks, "n1", Requirements(tasks=3, nodes=2, output=tmp_path, min_free=1))
    assert ranks.split == (0, 0)
    assert verdict.nodes == 2
    assert verdict.failures == ("rank 2 on n2: the clock is 120.0 s behind the clock of n1",)
