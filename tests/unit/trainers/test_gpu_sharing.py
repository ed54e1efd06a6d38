"""Test that trainers detect two ranks on one GPU, with fake GPUs, because the test machines have none."""

import sys
from types import SimpleNamespace

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.ranks import gpu_sharing
from toolkit.trainers.trouble import Trouble


class Rank:
    """A fake rank; ``others`` has the rank, node and GPUs of the other ranks."""

    def __init__(self, rank, size, others=()):
        self.rank, self.size, self._others = rank, size, others
        self.framework = "tensorflow"
        self.asked = 0

    def gather(self, value):
        self.asked += 1
        values = [("", ())] * self.size
        values[self.rank] = value
        for rank, node, gpus in self._others:
            values[rank] = (node, gpus)
        return values

    def agree(self, trouble):
        if trouble:
            raise trouble


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """Return a function that sets the GPUs that this rank can open, and the GPU that it uses."""

    def see(opens, taken, visible=None):
        for number in opens:
            (tmp_path / f"nvidia{number}").touch()
        kinds = [SimpleNamespace(name=f"/physical_device:GPU:{n}") for n in range(len(opens))]
        config = SimpleNamespace(
            list_physical_devices=lambda kind: kinds, get_visible_devices=lambda kind: [kinds[taken]]
        )
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
        monkeypatch.setattr(gpu_sharing, "DEVICES", tmp_path)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    return see


def test_the_same_gpu_on_the_same_node_is_one_line_with_the_way_out(seen):
    seen([2, 3], 0)
    with pytest.raises(Trouble, match=r"rank 2 on .* uses the same GPU as rank 1; .*--gpu-bind=single:1"):
        gpu_sharing.check_own_gpus(
            Rank(2, 3, [(0, gpu_sharing._node_id(), (0, 1)), (1, gpu_sharing._node_id(), (2, 3))])
        )


@every_row(("node", "gpus"), [("here", (3,)), ("elsewhere", (2,)), ("here", ())])
def test_another_gpu_or_another_node_is_well(seen, node, gpus):
    seen([2, 3], 0)
    name = gpu_sharing._node_id() if node == "here" else "node5"
    gpu_sharing.check_own_gpus(Rank(1, 2, [(0, name, gpus)]))


def test_the_rank_before_leaves_it_to_the_one_after_to_speak(seen):
    seen([0], 0)
    gpu_sharing.check_own_gpus(Rank(0, 2, [(1, gpu_sharing._node_id(), (0,))]))


def test_without_gpus_there_is_one_short_message_and_for_one_rank_none(monkeypatch, seen):
    seen([], 0)
    monkeypatch.setattr(sys.modules["tensorflow"].config, "get_visible_devices", lambda kind: [])
    for rank, messages in ((Rank(0, 1), 0), (Rank(1, 2), 1)):
        gpu_sharing.check_own_gpus(rank)
        assert rank.asked == messages


@every_row(
    ("opens", "visible", "count", "numbers"),
    [
        ([0, 1, 2, 3], None, 4, [0, 1, 2, 3]),
        ([0, 1, 2, 3], "2,1", 2, [2, 1]),
        ([2, 3], "0", 1, [2]),
        ([2, 3], "2", 1, []),
        ([0, 1], "GPU-8932f937", 1, []),
        ([], None, 1, []),
    ],
)
def test_gpus_have_the_numbers_of_the_node(tmp_path, opens, visible, count, numbers):
    for number in opens:
        (tmp_path / f"nvidia{number}").touch()
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert gpu_sharing.gpu_numbers(environment, count, tmp_path) == numbers


def test_parts_of_a_gpu_are_not_compared(tmp_path):
    (tmp_path / "nvidia0").touch()
    (tmp_path / "nvidia-caps").mkdir()
    for number in (1, 2, 30):
        (tmp_path / "nvidia-caps" / f"nvidia-cap{number}").touch()
    assert gpu_sharing.gpu_numbers({}, 1, tmp_path) == []
