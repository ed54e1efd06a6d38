"""Print the effects of learning options with a strategy: everywhere.py STRATEGY FOLDER.

The program runs in the training image. ``single`` stores its weights in FOLDER. All other strategies print
the distance of their weights from the stored weights.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, __file__.rpartition("/")[0])

import numpy as np
import papers
import small

from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.refusals import find_refusal
from toolkit.trainers.ranks.devices import prepare_devices
from toolkit.trainers.ranks.spread import RankSpread
from toolkit.trainers.ranks.world import open_world
from toolkit.trainers.training import trial

EVEN = tuple(part[:48] for part in papers.samples())
SLOW = {"learning_rate": 0.01}
CASES = {
    "plain": {},
    "nesterov": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "corrected": {
        "momentum": 0.9,
        "warmup_epochs": 2.0,
        "warmup_from": 0.02,
        "decay": "cosine",
        "decay_to": 0.1,
    },
    "ahead": {
        "momentum": 0.9,
        "nesterov": True,
        "weight_decay": 0.1,
        "accumulate": 2,
        "warmup_epochs": 2.0,
        "warmup_from": 0.02,
        "decay": "cosine",
    },
    "adam": {**SLOW, "optimizer": "adam", "weight_decay": 0.1, "decay": "step", "decay_at": (1.0, 2.0)},
    "lars": {"optimizer": "lars", "momentum": 0.9, "trust": 0.02, "decay": "polynomial", "decay_power": 1.0},
    "lamb": {**SLOW, "optimizer": "lamb", "weight_decay": 0.1, "decay": "exponential", "decay_factor": 0.5},
    "smoothed": {"label_smoothing": 0.2},
    "accumulated": {"momentum": 0.9, "accumulate": 2},
    "xla": {"momentum": 0.9, "xla": "on"},
    "bfloat16": {"mixed_precision": "bfloat16"},
    "float16": {"mixed_precision": "float16"},
    "shared norms": {"model": small.normed, "data": EVEN, "sync_batch_norm": True},
}

STRATEGY, FOLDER = sys.argv[1], Path(sys.argv[2])
SPREADS = {
    "mirrored": RankSpread(devices=2),
    "hybrid": RankSpread(devices=2),
    "ps-sync": RankSpread(sync=True),
}
WORLD = open_world(STRATEGY.removesuffix("-sync"), SPREADS.get(STRATEGY, RankSpread()))
prepare_devices(WORLD)
WORLD.begin()


def by_trial():
    """Return this rank's --batch-size auto, and the mean over all ranks, which must be the same number."""
    inputs, classes = papers.samples()
    data = Samples(np.tile(inputs, (20, 1)), np.tile(classes, 20))
    trial._SECONDS = 0.05
    found = trial.batch_size(small.linear, data, WORLD, Learning(0.1, optimizer="sgd"), limit=64, seed=1)
    return {"batch": found, "together": WORLD.total([found])[0] / WORLD.size}


def trained(chosen):
    """Return the weights and each epoch's loss of a training, or ``None`` if toolkit refuses its options."""
    learning = {name: value for name, value in chosen.items() if name not in ("model", "data")}
    known = Learning(**{"learning_rate": 0.1, "optimizer": "sgd", "momentum": 0.0, **learning})
    if find_refusal(known, STRATEGY.removesuffix("-sync"), known):
        return None
    batch = small.BATCH // WORLD.width // known.accumulate
    loop, seen = small.train(WORLD, batch=batch, scaling="none", **chosen)
    return [WORLD.value(one) for one in loop.model.variables], [loss for loss, _ in seen]


TOLD = {"strategy": STRATEGY, "width": WORLD.width, **by_trial(), "losses": {}, "apart": {}, "from plain": {}}
KEPT = FOLDER / "weights.npz"
WEIGHTS = {}
for name, chosen in CASES.items():
    if (done := trained(chosen)) is not None:
        WEIGHTS[name], TOLD["losses"][name] = done
if STRATEGY == "single":
    np.savez(KEPT, **{f"{name}/{i}": one for name, every in WEIGHTS.items() for i, one in enumerate(every)})
if WORLD.rank == 0:
    with np.load(KEPT) as kept:
        for name, every in WEIGHTS.items():
            theirs = [kept[f"{name}/{i}"] for i in range(len(every))]
            TOLD["apart"][name] = papers.furthest(every, theirs)
            if len(every) == 2:
                TOLD["from plain"][name] = papers.furthest(every, [kept[f"plain/{i}"] for i in range(2)])
    print("RESULT", json.dumps(TOLD), flush=True)
WORLD.leave(0)
