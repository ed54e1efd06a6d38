"""Test that workers share the sample numbers of a step."""

import numpy as np

from tests.unit.tables import every_row
from toolkit.trainers.strategies.resident import Numbers


@every_row(("columns", "workers"), [(6, 2), (7, 3), (2, 3)])
def test_workers_share_out_all_columns_of_their_steps(columns, workers):
    table = np.arange(4 * columns).reshape(4, columns)
    numbers = Numbers(("inputs",), table).take(1, 4)
    parts = [numbers.part(0, 2, worker, workers) for worker in range(workers)]
    assert all(held == "inputs" for held, _ in parts)
    assert np.array_equal(np.hstack([rows for _, rows in parts]), table[1:3])
    sizes = [rows.shape[1] for _, rows in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)
