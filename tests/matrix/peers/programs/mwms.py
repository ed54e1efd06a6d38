"""A script for TensorFlow's MultiWorkerMirroredStrategy as its guide writes it."""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
import tensorflow as tf

RANK = int(os.environ.get("SLURM_PROCID", "-1"))


def tell(comm, size=0):
    print(json.dumps({"rank": RANK, "size": size, "comm": comm}), flush=True)


tell("started")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
tell("begun", strategy.num_replicas_in_sync)


@tf.function
def step():
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.constant(1.0)), axis=None)


size = strategy.num_replicas_in_sync
tell("ok" if float(step()) == size else "wrong", size)
