"""Time each epoch of a Keras training; two programs take turns, one epoch each."""

import time

import tensorflow as tf
from baton import Baton


class Clock(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seconds = []
        self.baton = Baton()

    def on_epoch_begin(self, epoch, logs=None):
        self.begun = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.monotonic() - self.begun)
        self.baton.hand_on()
