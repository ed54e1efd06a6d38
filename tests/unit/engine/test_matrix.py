"""The engine against what really happened: no cell may be predicted wrong, and few may be unknown."""

import pytest

from tests.matrix.measured import Measured, cells, expressible
from toolkit.engine.predict import foresee

MEASURED = [m for cell in cells() if (m := expressible(cell))]


@pytest.mark.parametrize("cell", MEASURED, ids=lambda m: m.name)
def test_a_measured_cell_is_predicted_as_it_happened_or_not_at_all(cell: Measured):
    prediction = foresee(cell.host, cell.image, cell.request, cell.plan)
    assert prediction.outcome in {cell.outcome, "unknown"}, prediction.because


def test_few_measured_cells_are_left_unknown():
    unknown = [m.name for m in MEASURED if foresee(m.host, m.image, m.request, m.plan).outcome == "unknown"]
    assert len(MEASURED) > 350
    assert len(unknown) <= 16, unknown


def test_no_silent_failure_is_called_ok():
    silent = [m for m in MEASURED if m.outcome in {"singletons", "wrong-size"}]
    assert len(silent) > 100
    assert not [m.name for m in silent if foresee(m.host, m.image, m.request, m.plan).outcome == "ok"]
