"""Train as TensorFlow's tutorials do, with model.fit on NumPy arrays; print the images per second of each
epoch but the first.

Usage: tutorial.py dense|cnn FOLDER EPOCHS BATCH
"""

import json
import sys

import tensorflow as tf
from clock import Clock
from digits import part

network, folder, epochs, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


layers = tf.keras.layers
if network == "dense":
    stack = [layers.Flatten(input_shape=(28, 28)), layers.Dense(512, activation="relu"), layers.Dense(10)]
else:
    stack = [
        layers.Reshape((28, 28, 1), input_shape=(28, 28)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Dropout(0.25),
        layers.Flatten(),
        layers.Dense(128, activation="relu"),
        layers.Dropout(0.5),
        layers.Dense(10),
    ]
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential(stack)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
inputs, classes = part(folder, "train")


clock = Clock()
model.fit(inputs, classes, batch_size=batch, epochs=epochs, verbose=0, callbacks=[clock])
accuracy = model.evaluate(*part(folder, "t10k"), batch_size=1000, verbose=0)[1]
rates = [len(classes) / seconds for seconds in clock.seconds[1:]]
print("bench:", json.dumps({"rates": rates, "accuracy": accuracy}))
