"""Test how often the matrix repeats a launch, and the time limit of a launch."""

from tests.matrix.launches import Launch
from tests.matrix.run import PATIENCE, SECONDS, measure
from toolkit.model.prediction import Plan, Request

PLAN = Plan(mode="srun-none", launcher=("srun", "--mpi=none"), container=(), env={}, unset=(), binds=())
WAITS = "probe: error: s_p_parse_file: cannot stat file /etc/slurm/slurm.conf: No such file, retrying in 1sec"


class Clock:
    """A fake cluster and clock: each launch ends after ``needs`` seconds with the given output."""

    def __init__(self, needs: int, text: str) -> None:
        self.needs, self.text = needs, text
        self.limits: list[int] = []

    before = ""

    def word(self, image):
        return f"{image}.sif"

    def run(self, jobs):
        self.limits += [job["seconds"] for job in jobs]
        return [
            {"text": self.text, "exit": 1 if late else 124, "timed_out": not late}
            for late in (self.needs < job["seconds"] for job in jobs)
        ]


def tried(clock):
    launch = Launch("x", "pmix", "srun-none", "naive", PLAN, Request(nodes=2))
    (cell,) = measure(clock, [launch], "apptainer")
    return cell.outcome, cell.seen, clock.limits


def test_ranks_that_wait_for_a_configuration_are_given_the_time_to_give_up():
    assert tried(Clock(120, WAITS)) == ("init-failure", {"init-failure": 1}, [SECONDS, PATIENCE])


def test_what_hangs_is_tried_twice_with_the_same_limit():
    assert tried(Clock(10_000, "nothing")) == ("hang", {"hang": 2}, [SECONDS, SECONDS])
    assert tried(Clock(10_000, WAITS))[2] == [SECONDS, PATIENCE, PATIENCE]


def test_what_ends_in_time_is_tried_once():
    assert tried(Clock(3, "abort")) == ("init-failure", {"init-failure": 1}, [SECONDS])
