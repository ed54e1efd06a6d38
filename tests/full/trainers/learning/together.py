"""Print the effects of each learning option with two Horovod ranks, as JSON; runs in the training image."""

import json
import sys

sys.path.insert(0, __file__.rpartition("/")[0])

import papers
import small

from toolkit.trainers.strategies.horovod import Horovod
from toolkit.trainers.training.trial import Alone

WORLD, ALONE, FOUND = Horovod(), Alone(), {}


def both(name, half=8, **chosen):
    """Record how far the weights of two ranks with half the batch are from one process's weights."""
    together, _ = small.train(WORLD, batch=half, scaling="none", **chosen)
    alone = {name: value for name, value in chosen.items() if name not in ("compression", "sync_batch_norm")}
    one, _ = small.train(ALONE, batch=2 * half, scaling="none", **alone)
    FOUND[name] = papers.furthest(small.weights(together), small.weights(one))
    return small.weights(together)


for scaling in ("linear", "sqrt", "none"):
    FOUND[f"{scaling} rate"] = small.train(WORLD, batch=8, scaling=scaling, epochs=1)[1][-1][1]
FOUND["warm-up rates"] = [rate for _, rate in small.train(WORLD, batch=2, warmup_epochs=2.0, momentum=0.9)[1]]
plain = both("plain", momentum=0.9)
again = both("again", momentum=0.9)
FOUND["same twice"] = all((a == b).all() for a, b in zip(plain, again, strict=True))
both("fp16", momentum=0.9, compression="fp16")
both("lars", optimizer="lars", momentum=0.9, trust=0.02, weight_decay=0.1)
both("lamb", optimizer="lamb", weight_decay=0.1)
both("xla", momentum=0.9, xla="on")
both("accumulated", half=4, accumulate=2, momentum=0.9)
both("corrected", momentum=0.9, warmup_epochs=2.0, warmup_from=0.02)
both("ahead", momentum=0.9, nesterov=True, weight_decay=0.1, warmup_epochs=2.0, warmup_from=0.02)
both("embedded", model=small.embedded, data=small.words(), momentum=0.9, weight_decay=0.1)
both("float16", mixed_precision="float16")
even = tuple(part[:48] for part in papers.samples())
both("own norms", model=small.normed, data=even)
both("shared norms", model=small.normed, data=even, sync_batch_norm=True)
shared, _ = small.train(WORLD, model=small.normed, sync_batch_norm=True)
FOUND["layers"] = [type(layer).__name__ for layer in shared.model.layers]
if WORLD.rank == 0:
    print(json.dumps(FOUND))
