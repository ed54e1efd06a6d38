"""Use ``ranks.aggregate`` on two ranks, from ``init`` to ``finalize``.

The gradients are in two teams, as for the two networks of a GAN. Team 0 is synchronous in all six steps.
Team 1 is synchronous in the first two steps, gets zeros in the third step, and then the averages of the
previous step.
"""

import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf

from toolkit.trainers.ranks import aggregate as mc
from toolkit.trainers.ranks import fusion, team
from toolkit.trainers.trouble import Trouble

mc.init_mpi()
rank, ranks = mc.get_rank(), mc.get_nranks()
shapes = [(3,), (600, 1000), (2, 2), (500, 900), (1,)]
mc.init(2, 2, sum(int(np.prod(shape)) for shape in shapes), "tensorflow")
try:
    mc.gradients([tf.zeros(3)], 1)
except Trouble as error:
    told = error.message
mc.config_team(0, 0, 6, 6, 2, 3)
mc.config_team(1, 0, 2, 6)


@tf.function
def both(value):
    own = [tf.fill(shape, value + number) for number, shape in enumerate(shapes)]
    return mc.gradients(own, 0), mc.gradients([tf.cast(own[0], tf.float16), 10 * own[3]], 1)


synchronous, delayed = [], []
for step in range(6):
    one, other = both(tf.constant(float(step * 100 + rank * 10)))
    synchronous.append([float(tf.reduce_max(abs(value - number))) for number, value in enumerate(one)])
    delayed.append([float(other[0][0]), float(other[1][0, 0])])
expected = [step * 100 + 5 for step in range(6)]
assert np.allclose(synchronous, [[value] * 5 for value in expected]), synchronous
late = [[value, 10 * (value + 3)] for value in expected]
assert np.allclose(delayed, [*late[:2], [0, 0], *late[2:5]], rtol=1e-3), delayed
try:
    mc.gradients([tf.zeros((2000, 1000))], 0)
except Trouble as error:
    larger = error.message
# A gradient that takes half a second must delay only its own bucket.
left, average = [], team.GradientBuffer.average


def noted(gradient, comm):
    average(gradient, comm)
    left.append((gradient.buffer.size, time.monotonic()))


def slow(value):
    time.sleep(0.5)
    return np.full(4, value, dtype="float32")


@tf.function
def step(value):
    late = tf.ensure_shape(tf.numpy_function(slow, [value], tf.float32, stateful=False), (4,))
    return mc.gradients([late, tf.ones(fusion.BUCKET)], 0)


team.GradientBuffer.average = noted
means = step(tf.constant(float(rank)))
assert [size for size, _ in left] == [fusion.BUCKET, 4], left
assert left[1][1] - left[0][1] > 0.2, left
assert means[0].numpy().tolist() == [0.5] * 4
mean = np.array([rank, 2.0 * rank], dtype="float32")
mc.average(mean)
variables = [tf.Variable(float(rank + 1)), tf.Variable([rank], dtype=tf.int64), tf.Variable([1.5, rank])]
before = mc.check_buffers_match([one.numpy() for one in variables], 1)
for variable, value in zip(variables, mc.broadcast(variables, 1), strict=True):
    variable.assign(value)
after = mc.check_buffers_match([one.numpy() for one in variables], 1)
folder = mc.rank_directory("/out/teams")
(folder / "mine").write_text(str(rank))
mc.barrier()
mc.finalize()
if rank == 0:
    values = [one.numpy().tolist() for one in variables]
    print("DONE", ranks, mean.tolist(), before, after, values, folder)
    print(told)
    print(larger)
