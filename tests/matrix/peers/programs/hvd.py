"""A script for Horovod with TensorFlow."""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
import horovod.tensorflow as hvd
import tensorflow as tf

RANK = int(os.environ.get("SLURM_PROCID", "-1"))


def tell(comm, size=0):
    print(json.dumps({"rank": RANK, "size": size, "comm": comm}), flush=True)


tell("started")
hvd.init()
tell("begun", hvd.size())
total = float(hvd.allreduce(tf.constant([1.0]), op=hvd.Sum)[0])
tell("ok" if total == hvd.size() else "wrong", hvd.size())
