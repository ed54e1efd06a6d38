"""Run a small training with the trainers' own loop, for the programs in this folder."""

import numpy as np
import papers
import tensorflow as tf

from toolkit.trainers.data.shares import deal
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.training.loop import Loop

EPOCHS, BATCH, SEED = 3, 16, 5


def linear(l2=0.0):
    start = papers.weights()
    regularizer = tf.keras.regularizers.L2(l2) if l2 else None
    inputs = tf.keras.layers.Input((papers.FEATURES,))
    dense = tf.keras.layers.Dense(papers.CLASSES, kernel_regularizer=regularizer)
    made = tf.keras.Model(inputs, dense(inputs))
    made.set_weights(start)
    return made


def normed():
    """Return a model with batch normalisation; train it on 48 samples, so that all batches of 16 are full."""
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((papers.FEATURES,)),
            layers.Dense(6),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dense(papers.CLASSES),
        ]
    )


def embedded():
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [layers.Input((4,)), layers.Embedding(50, 6), layers.Flatten(), layers.Dense(papers.CLASSES)]
    )


def words():
    random = np.random.default_rng(7)
    inputs = random.integers(0, 50, (papers.SAMPLES, 4)).astype("int32")
    return inputs, random.integers(0, papers.CLASSES, papers.SAMPLES).astype("int32")


def loop(world, learning, *, model=linear, batch=BATCH, epochs=EPOCHS, data=None):
    return Loop(
        model,
        Samples(*(data or papers.samples())),
        world,
        learning.of_batch(batch),
        batch=batch,
        epochs=epochs,
        seed=SEED,
    )


def train(world, learning=None, *, model=linear, batch=BATCH, epochs=EPOCHS, data=None, **chosen):
    learning = learning or Learning(**{"learning_rate": 0.1, "optimizer": "sgd", "momentum": 0.0, **chosen})
    made, seen = loop(world, learning, model=model, batch=batch, epochs=epochs, data=data), []
    for number in range(epochs):
        score = made.epoch(number, 1, EpochPart(), lambda part, steps: steps).score
        seen.append((score.loss, made.learning_rate))
    return made, seen


def weights(loop):
    return [variable.numpy() for variable in loop.model.variables]


def batches(batch=BATCH, epochs=EPOCHS):
    """Return the batches of one process in order, and the number of epochs done before each batch."""
    inputs, classes = papers.samples()
    found, done = [], []
    for number in range(epochs):
        tables = deal(
            count=len(classes), batch=batch, rank=0, size=1, devices=1, epoch=number, seed=SEED, passes=1
        )
        at = 0
        for table in tables:
            for row in table:
                found.append((inputs[row], classes[row]))
                done.append(number + at / len(classes))
                at += len(row)
    return found, np.array(done)
