"""Print the effects of each learning option in one process with two devices, as JSON; runs in the training
image.
"""

import json
import sys

sys.path.insert(0, __file__.rpartition("/")[0])

import papers
import small

from toolkit.trainers.ranks.devices import prepare_devices
from toolkit.trainers.ranks.spread import RankSpread
from toolkit.trainers.strategies.mirrored import Mirrored
from toolkit.trainers.training.trial import Alone

WORLD, ALONE, FOUND = Mirrored(RankSpread(devices=2)), Alone(), {}
prepare_devices(WORLD)
WORLD.begin()


def both(name, half=8, **chosen):
    """Record how far the weights of two devices with half the batch are from one device's weights."""
    together, seen = small.train(WORLD, batch=half, **chosen)
    alone = {name: value for name, value in chosen.items() if name != "sync_batch_norm"}
    one, other = small.train(ALONE, batch=2 * half, reference_batch=half, **alone)
    ours = [WORLD.value(variable) for variable in together.model.variables]
    FOUND[name] = papers.furthest(ours, small.weights(one))
    FOUND[f"{name} rates"] = [rate for _, rate in seen + other]


both("plain", momentum=0.9)
both("corrected", momentum=0.9, warmup_epochs=2.0, decay="cosine")
both("ahead", momentum=0.9, nesterov=True, weight_decay=0.1, warmup_epochs=2.0, warmup_from=0.02)
both("embedded", model=small.embedded, data=small.words(), momentum=0.9, weight_decay=0.1)
both("accumulated", half=4, accumulate=2, momentum=0.9)
both("lars", optimizer="lars", momentum=0.9, trust=0.02, weight_decay=0.1)
both("lamb", optimizer="lamb", learning_rate=0.01, weight_decay=0.1)
both("xla", momentum=0.9, xla="on")
both("float16", momentum=0.9, mixed_precision="float16")
even = tuple(part[:48] for part in papers.samples())
both("own norms", model=small.normed, data=even)
both("shared norms", model=small.normed, data=even, sync_batch_norm=True)
print(json.dumps(FOUND))
