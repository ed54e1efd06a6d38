"""Train as JAX's tutorials do, with NumPy batches and a compiled update; print the images per second of each
epoch but the first.

The network and optimizer are the same as in ``tutorial.py``.

Usage: plain_jax.py FOLDER EPOCHS BATCH
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from baton import Baton
from digits import part
from jax.example_libraries import optimizers, stax

folder, epochs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
images, digits = part(folder, "train")
images = images.astype("float32")
init, predict = stax.serial(stax.Flatten, stax.Dense(512), stax.Relu, stax.Dense(10))
start, update, weights = optimizers.adam(0.001)


def loss(parameters, inputs, classes):
    log_odds = jax.nn.log_softmax(predict(parameters, inputs))
    return -jnp.take_along_axis(log_odds, classes[:, None], 1).mean()


@jax.jit
def step(number, state, inputs, classes):
    return update(number, jax.grad(loss)(weights(state), inputs, classes), state)


state = start(init(jax.random.key(1), (-1, 28, 28))[1])
random, baton, rates, number = np.random.default_rng(1), Baton(), [], 0
for _ in range(epochs):
    begun = time.monotonic()
    order = random.permutation(len(digits))
    for first in range(0, len(digits) - batch + 1, batch):
        rows = order[first : first + batch]
        state = step(number, state, images[rows], digits[rows])
        number += 1
    jax.block_until_ready(state)
    rates.append(len(digits) / (time.monotonic() - begun))
    baton.hand_on()
test_images, test_digits = part(folder, "t10k")
accuracy = float((predict(weights(state), test_images.astype("float32")).argmax(1) == test_digits).mean())
print("bench:", json.dumps({"rates": rates[1:], "accuracy": accuracy}))
