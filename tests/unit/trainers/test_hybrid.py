"""Test on which device the trainer adds the devices' gradients, with a stand-in for TensorFlow."""

import sys
from types import SimpleNamespace

from toolkit.trainers.strategies.hybrid import total


def test_the_sum_stays_on_the_first_device(monkeypatch):
    reduce = SimpleNamespace(ReduceOp=SimpleNamespace(SUM="sum"))
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(distribute=reduce))
    asked = []

    def reduce_to(how, gradient, destinations):
        asked.append((how, destinations))
        return (f"{how} of {gradient} on {destinations}",)

    strategy = SimpleNamespace(
        experimental_local_results=lambda value: value, extended=SimpleNamespace(reduce_to=reduce_to)
    )
    assert total(strategy, ("g0", "g1")) == "sum of ('g0', 'g1') on g0"
    assert asked == [("sum", "g0")]
