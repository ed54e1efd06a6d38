#!/usr/bin/env python3
# -*- coding: utf-8 -*-
import argparse
import os
import time

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers, optimizers


def parse_args():
    parser = argparse.ArgumentParser(description="Train a classifier of digits – naïve version")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--optimizer", default="rmsprop")
    parser.add_argument("--output", default="argparse-out")
    return parser.parse_args()


def get_data(path="mnist.npz"):
    with np.load(path) as f:
        x_train = f["x_train"].reshape(-1, 784).astype("float32") / 255
        x_test = f["x_test"].reshape(-1, 784).astype("float32") / 255
        return x_train, f["y_train"], x_test, f["y_test"]


def build_model(args):
    model = keras.Sequential()
    model.add(layers.Dense(64, activation="relu", input_shape=(784,)))
    model.add(layers.Dense(10, activation="softmax"))
    if args.optimizer == "rmsprop":
        optimizer = optimizers.RMSprop(learning_rate=args.lr)
    else:
        optimizer = optimizers.Adam(learning_rate=args.lr)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    args = parse_args()
    x_train, y_train, x_test, y_test = get_data()
    model = build_model(args)
    if not os.path.exists(args.output): os.makedirs(args.output)
    start = time.time()
    model.fit(x_train, y_train, batch_size=args.batch_size, epochs=args.epochs, shuffle=True, verbose=2)
    print("Took %.1f s" % (time.time() - start))
    _, accuracy = model.evaluate(x_test, y_test, batch_size=256)
    print("Test accuracy:", accuracy)
    model.save(os.path.join(args.output, "model.keras"))


if __name__ == "__main__":
    main()
