"""The engine against what really happened: no cell may be predicted wrong, and few may be unknown."""

from collections import Counter

import pytest

from tests.matrix.measured import Measured, cells, excluded, expressible
from toolkit.engine.plans import propose
from toolkit.engine.predict import foresee

MEASURED = [m for cell in cells() if (m := expressible(cell))]
EXCLUDED = {
    "the host's launcher is Hydra": 112,
    "there is no allocation of Slurm": 104,
    "host libraries are mounted in: the mode bind": 76,
    "no PMI is offered: the mode srun-none": 56,
    "/dev/shm is small: no fact tells its size": 24,
    "the launcher inside is itself a rank of srun": 21,
    "the rank's own command changes its environment": 13,
    "a file in the home folder: no fact tells it": 9,
    "another Python of the image is started": 2,
}


def outcome(cell: Measured) -> str:
    return foresee(cell.host, cell.image, cell.request, cell.plan).outcome


@pytest.mark.parametrize("cell", MEASURED, ids=lambda m: m.name)
def test_a_measured_cell_is_predicted_as_it_happened_or_not_at_all(cell: Measured):
    prediction = foresee(cell.host, cell.image, cell.request, cell.plan)
    assert prediction.outcome in {cell.outcome, "unknown"}, prediction.because


def test_every_cell_that_is_left_out_has_a_reason():
    left_out = Counter(reason for cell in cells() if (reason := excluded(cell)))
    assert left_out == EXCLUDED
    assert len(MEASURED) + sum(EXCLUDED.values()) == len(cells()) == 964


def test_few_plain_launches_are_left_unknown():
    plain = [m for m in MEASURED if not (m.host.environment or m.request.env or m.plan.container)]
    unknown = [m.name for m in plain if outcome(m) == "unknown"]
    assert len(plain) > 320
    assert len(unknown) <= 24, unknown


def test_no_failure_is_called_ok():
    failed = [m for m in MEASURED if m.outcome != "ok"]
    assert len(failed) > 250
    assert len([m for m in failed if m.outcome in {"singletons", "wrong-size"}]) > 100
    assert not [m.name for m in failed if outcome(m) == "ok"]


def test_the_words_that_the_engine_would_launch_with_were_measured():
    own = [m for m in MEASURED if m.plan == propose(m.host, m.image, m.request, m.plan.mode)]
    assert len(own) >= 228
    assert {m.outcome for m in own if outcome(m) == "ok"} == {"ok"}


def test_the_engine_takes_away_what_a_trap_of_the_host_sets():
    for m in MEASURED:
        left = {
            n
            for n in m.host.environment
            if not n.endswith(("LD_LIBRARY_PATH", "LD_PRELOAD", "PMI_RANK", "HOME"))
        }
        assert left <= set(propose(m.host, m.image, m.request, m.plan.mode).unset)
