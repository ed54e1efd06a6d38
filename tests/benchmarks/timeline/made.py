"""Generate a Horovod timeline of any size: training steps of several ranks, with many fused gradients."""

import random
from pathlib import Path

_TENSORS = 160  # ResNet50 has this many gradients
_RANKS = 4


def make(file: Path, size: int, *, seed: int = 1) -> None:
    """Write steps until the file has ``size`` bytes; the JSON array is not closed, as after a stopped job."""
    chance = random.Random(seed)
    now = 1000
    with file.open("w") as out:
        out.write("[\n")
        for pid in range(1, _TENSORS + 1):
            name = f"DistributedSGD_Allreduce/cond_{pid}/HorovodAllreduce_grads_{pid}_0"
            out.write(
                f'{{"name": "process_name", "ph": "M", "pid": {pid}, "args": {{"name": "{name}"}}}},\n'
                f'{{"name": "process_sort_index", "ph": "M", "pid": {pid}, '
                f'"args": {{"sort_index": {pid}}}}},\n'
            )
        while out.tell() < size:
            now = _step(out, now, chance)


def _step(out, now, chance):
    ready = now + 50_000
    for pid in range(1, _TENSORS + 1):
        ready += chance.randrange(100, 300)
        out.write(f'{{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": {ready}, "pid": {pid}}},')
        last = ready
        for rank in range(_RANKS):
            last = ready + rank * 40
            out.write(f'{{"ph": "X", "name": "{rank}", "ts": {last}, "pid": {pid}, "dur": 0}},')
        out.write(f'{{"ph": "E", "ts": {last}, "pid": {pid}}},\n')
    begun = ready + 500
    for first in range(1, _TENSORS + 1, 40):
        group = range(first, first + 40)
        for pid in group:
            out.write(f'{{"ph": "B", "name": "ALLREDUCE", "ts": {begun}, "pid": {pid}}},\n')
        for name, took in (
            ("MEMCPY_IN_FUSION_BUFFER", 700),
            ("MPI_ALLREDUCE", 4000 + first * 20),
            ("MEMCPY_OUT_FUSION_BUFFER", 600),
        ):
            for pid in group:
                out.write(f'{{"ph": "B", "name": "{name}", "ts": {begun}, "pid": {pid}}},')
            begun += took
            for pid in group:
                out.write(f'{{"ph": "E", "ts": {begun}, "pid": {pid}}},\n')
        for pid in group:
            shape = f'"args": {{"dtype": "float32", "shape": "[{first * 10 + 256}, 1024]"}}'
            out.write(f'{{"ph": "E", "ts": {begun}, "pid": {pid}, {shape}}},\n')
    return begun
