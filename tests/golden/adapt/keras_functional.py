import json
import os

import numpy as np
import tensorflow as tf
from tensorflow.keras import Model, layers
from tensorflow.keras.callbacks import CSVLogger, EarlyStopping, ModelCheckpoint, ReduceLROnPlateau
from tensorflow.keras.optimizers import SGD

BATCH = 32
LR = 0.02
OUT = "out"


def load():
  d = np.load("mnist.npz")
  norm = lambda a: (a.astype("float32") / 255.)[..., None]
  return (norm(d["x_train"]), d["y_train"]), (norm(d["x_test"]), d["y_test"])


(x, y), (xt, yt) = load()
n_val = len(x) // 10

inputs = layers.Input(shape=(28, 28, 1))
h = layers.Conv2D(8, 3, strides=2, activation="relu")(inputs)
h = layers.BatchNormalization()(h)
h = layers.Flatten()(h)
h = layers.Dense(32, activation="relu")(h)
outputs = layers.Dense(10, activation="softmax")(h)
net = Model(inputs, outputs)

opt = SGD(LR, momentum=0.9)
net.compile(opt, "sparse_categorical_crossentropy", metrics=["accuracy"])

os.makedirs(OUT)
cbs = [
  EarlyStopping(monitor="val_loss", patience=3),
  ModelCheckpoint(os.path.join(OUT, "best.weights.h5"), save_best_only=True, save_weights_only=True),
]
cbs.append(ReduceLROnPlateau(patience=2))
cbs.append(CSVLogger(OUT + "/log.csv"))

history = net.fit(
  x[n_val:], y[n_val:],
  batch_size=BATCH,
  epochs=6,
  validation_data=(x[:n_val], y[:n_val]),
  callbacks=cbs,
  verbose=2,  # one line an epoch
)

net.load_weights(os.path.join(OUT, "best.weights.h5"))
score = net.evaluate(xt, yt, verbose=0)
with open(OUT + "/history.json", "w") as f:
  json.dump({k: [float(v) for v in vs] for k, vs in history.history.items()}, f)
print("Test accuracy: %.4f" % score[1])
