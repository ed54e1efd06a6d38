"""Time allreduces of 4 KB, one after another, on all ranks in the image; rank 0 prints the median in ms.

Usage: allreduce.py ours|default
"""

import json
import statistics
import sys
import time

import tensorflow as tf

if sys.argv[1] == "ours":
    from toolkit.trainers.ranks.world import open_world

    rank = open_world("horovod").rank
    import horovod.tensorflow as hvd
else:
    import horovod.tensorflow as hvd

    hvd.init()
    rank = hvd.rank()
values, taken = tf.ones(1024), []
for _ in range(300):
    begun = time.monotonic()
    hvd.allreduce(values, name="small").numpy()
    taken.append((time.monotonic() - begun) * 1000)
if rank == 0:
    print("bench:", json.dumps({"rates": [statistics.median(taken[100:])]}))
hvd.shutdown()
