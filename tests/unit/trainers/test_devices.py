"""Test which GPU a rank uses, with a stand-in for TensorFlow, because the test machines have no GPU."""

import sys
from types import SimpleNamespace

import pytest

from tests.unit.tables import every_row
from toolkit.trainers.ranks import devices
from toolkit.trainers.ranks.devices import gpus_are_own, prepare_devices, visible_gpus
from toolkit.trainers.trouble import Trouble


class Config:
    def __init__(self, gpus):
        self.gpus = [f"GPU:{n}" for n in range(gpus)]
        self.growing, self.visible, self.threads, self.parts = [], None, {}, None
        self.experimental = SimpleNamespace(set_memory_growth=self._grow)
        self.threading = SimpleNamespace(
            set_intra_op_parallelism_threads=lambda n: self.threads.update(intra=n),
            set_inter_op_parallelism_threads=lambda n: self.threads.update(inter=n),
        )

    def list_physical_devices(self, kind):
        return self.gpus if kind == "GPU" else ["CPU:0"]

    def set_visible_devices(self, device, kind):
        assert kind == "GPU"
        self.visible = device

    def LogicalDeviceConfiguration(self):  # noqa: N802 - TensorFlow's name
        return "a part"

    def set_logical_device_configuration(self, device, parts):
        self.parts = (device, parts)

    def _grow(self, gpu, enabled):
        assert enabled
        self.growing.append(gpu)


@pytest.fixture
def prepared(monkeypatch):
    for name in ("SLURM_GPUS_PER_TASK", "SLURM_GPUS_ON_NODE", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(devices, "openable", lambda _: ())
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")

    def prepare(gpus, local_rank, local_size, wanted=1, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        config = Config(gpus)
        monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
        rank = SimpleNamespace(local_rank=local_rank, local_size=local_size, requested_devices=wanted)
        threads = prepare_devices(rank)
        assert config.threads == {"intra": threads, "inter": 2}
        return config

    return prepare


@every_row("rank", [0, 1, 3])
def test_each_rank_sees_the_gpu_of_its_number_and_all_grow(prepared, rank):
    config = prepared(4, rank, 4)
    assert config.visible == [f"GPU:{rank}"]
    assert config.growing == config.gpus


def test_without_a_gpu_nothing_is_hidden(prepared):
    assert prepared(0, 1, 2).visible is None


@every_row(("gpus", "size", "said"), [(1, 2, "with 1 GPU;"), (2, 4, "with 2 GPUs;")])
def test_more_ranks_than_gpus_are_refused(prepared, gpus, size, said):
    with pytest.raises(Trouble, match=said) as told:
        prepared(gpus, 0, size)
    assert f"{size} ranks were started on a node" in told.value.message
    assert "CUDA_VISIBLE_DEVICES=-1" in told.value.message


@every_row("environment", [{"SLURM_GPUS_PER_TASK": "1"}, {"SLURM_GPUS_ON_NODE": "4"}])
def test_a_rank_that_is_shown_its_own_gpu_only_takes_it(prepared, environment):
    assert prepared(1, 3, 4, **environment).visible == ["GPU:0"]


def test_all_gpus_of_the_node_are_not_a_ranks_own():
    two = SimpleNamespace(local_size=2, requested_devices=1)
    assert not gpus_are_own({"SLURM_GPUS_ON_NODE": "1"}, two, 1, 1)
    assert not gpus_are_own({}, two, 1, 1)


@every_row(
    ("gpus", "ranks", "environment"),
    [
        # With --gpus-per-task=1 --gpu-bind=none, each rank sees all GPUs.
        (4, 4, {"SLURM_GPUS_PER_TASK": "1", "SLURM_GPUS_ON_NODE": "4"}),
        (4, 4, {"SLURM_GPUS_PER_TASK": "a100:1"}),
        # A job has four GPUs, and CUDA_VISIBLE_DEVICES=0,1.
        (2, 2, {"SLURM_GPUS_ON_NODE": "4"}),
    ],
)
@every_row("wanted", [0, 1])
def test_ranks_that_may_all_see_the_same_take_one_each(prepared, gpus, ranks, environment, wanted):
    taken = [prepared(gpus, rank, ranks, wanted, **environment).visible for rank in range(ranks)]
    assert taken == [[f"GPU:{rank}"] for rank in range(ranks)]


def test_ranks_that_see_the_gpus_of_their_socket_only_are_refused_with_the_way_out(prepared):
    with pytest.raises(
        Trouble,
        match=r"4 ranks on this node all use the same 2 GPUs, although .* 4 .*--gpu-bind=single:1",
    ):
        prepared(2, 1, 4, SLURM_GPUS_ON_NODE="4")
    with pytest.raises(Trouble, match=r"--gpu-bind=single:1, with --gpus-per-task=2$"):
        prepared(3, 1, 2, 2, SLURM_GPUS_ON_NODE="4")


def test_two_ranks_a_gpu_are_refused_though_slurm_shows_each_one(prepared):
    with pytest.raises(
        Trouble, match="4 ranks were started on a node with 2 GPUs; start one rank for each GPU"
    ):
        prepared(1, 3, 4, SLURM_GPUS_ON_NODE="2")


def test_a_rank_that_takes_all_takes_those_that_only_it_may_open(prepared, monkeypatch):
    assert prepared(4, 1, 2, 0, SLURM_GPUS_ON_NODE="8").visible == ["GPU:2", "GPU:3"]
    monkeypatch.setattr(devices, "openable", lambda _: (4, 5, 6, 7))
    assert prepared(4, 1, 2, 0, SLURM_GPUS_ON_NODE="8").visible == [f"GPU:{number}" for number in range(4)]


@every_row(
    ("gpus", "rank", "size", "wanted", "taken"),
    [(4, 0, 1, 0, [0, 1, 2, 3]), (4, 0, 1, 2, [0, 1]), (8, 1, 2, 0, [4, 5, 6, 7]), (8, 1, 2, 3, [4, 5, 6])],
)
def test_a_rank_with_several_devices_takes_its_part_of_the_node(prepared, gpus, rank, size, wanted, taken):
    assert prepared(gpus, rank, size, wanted).visible == [f"GPU:{number}" for number in taken]


def test_all_gpus_that_slurm_shows_a_rank_are_its_own(prepared):
    assert prepared(2, 3, 4, 0, SLURM_GPUS_ON_NODE="8").visible == ["GPU:0", "GPU:1"]


def test_more_devices_than_gpus_are_refused(prepared):
    with pytest.raises(Trouble, match="--devices 3: this node has only 4 GPUs for 2 ranks"):
        prepared(4, 0, 2, 3)


def test_without_gpus_the_cpu_is_parted(prepared):
    assert prepared(0, 0, 1, 3).parts == ("CPU:0", ["a part"] * 3)
    assert prepared(0, 0, 1, 0).parts is None


@every_row(
    ("named", "opens", "count"),
    [(None, 4, 4), (None, 0, 0), ("0,2", 4, 2), ("", 4, 0), ("-1", 4, 0), ("0", 0, 0)],
)
def test_cuda_shows_what_its_variable_names(named, opens, count):
    assert visible_gpus({} if named is None else {"CUDA_VISIBLE_DEVICES": named}, opens) == count
