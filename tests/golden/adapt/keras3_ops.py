import keras
import numpy as np
from keras import layers, ops


class Scale(layers.Layer):
    def call(self, x):
        return ops.cast(x, "float32") / 255.0


with np.load("mnist.npz") as f:
    x_train, y_train, x_test, y_test = f["x_train"], f["y_train"], f["x_test"], f["y_test"]

model = keras.Sequential(
    [
        keras.Input(shape=(28, 28)),
        Scale(),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=1e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
checkpoint = keras.callbacks.ModelCheckpoint("keras3.weights.h5", save_weights_only=True)
model.fit(x_train, y_train, batch_size=32, epochs=5, validation_split=0.1, callbacks=[checkpoint])
score = model.evaluate(x_test, y_test, verbose=0)
print("Test accuracy:", score[1])
model.save("keras3.keras")
