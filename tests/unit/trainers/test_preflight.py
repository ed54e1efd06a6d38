import pytest

from toolkit.trainers import preflight
from toolkit.trainers.preflight import library_name


@pytest.mark.parametrize(
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
    """Ranks as a faulty MPI would show them, which no MPI on this machine does."""

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
    assert "two ranks the same number" in preflight.check_messages(Broken([0, 0], 3.0))


def test_a_wrong_sum_is_noticed():
    assert "messages do not arrive whole" in preflight.check_messages(Broken([0, 1], 2.0))


def test_a_rank_that_is_alone_says_so_and_what_to_do():
    sentence = preflight._wrong_size(1, 2)
    assert sentence.startswith("MPI reports a world of 1 where 2 tasks were started: every rank is alone")
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
