"""Train Keras's ResNet50 on random images with model.fit, in the image; print the images per second of each
round.

Usage: plain_resnet.py BATCH STEPS ROUNDS
"""

import json
import sys

import numpy as np
import tensorflow as tf
from clock import Clock

batch, steps, rounds = map(int, sys.argv[1:])
random = np.random.default_rng(1)
images = random.integers(0, 256, (batch, 224, 224, 3), np.uint8)
classes = random.integers(0, 1000, batch)

tf.keras.utils.set_random_seed(1)
inputs = tf.keras.layers.Input((224, 224, 3))
scaled = tf.keras.layers.Rescaling(1 / 127.5, -1)(inputs)
body = tf.keras.applications.ResNet50(weights=None, include_top=False, pooling="avg")
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1000)(body(scaled)))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.legacy.Adam(0.01), loss)
data = tf.data.Dataset.from_tensors((images, classes)).repeat()


# Call fit once for all rounds, because some repeated calls paused for two seconds. The first round is a
# warm-up.
clock = Clock()
model.fit(data, steps_per_epoch=steps, epochs=rounds + 1, verbose=0, callbacks=[clock])
print("bench:", json.dumps({"rates": [batch * steps / seconds for seconds in clock.seconds[1:]]}))
