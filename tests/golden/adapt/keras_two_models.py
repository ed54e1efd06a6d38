# A large model, and a small one that learns from it.
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras.layers import Dense, Dropout

data = np.load("mnist.npz")
flat = lambda name: data[name].reshape(-1, 784) / 255.0
x_train, x_test = flat("x_train"), flat("x_test")
y_train, y_test = data["y_train"], data["y_test"]


def make(width, name):
    net = keras.Sequential([Dense(width, "relu"), Dropout(0.1), Dense(10, "softmax")], name=name)
    net.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", ["accuracy"])
    return net


teacher = make(128, "teacher")
teacher.fit(x_train, y_train, epochs=3, verbose=0, batch_size=64)
soft = teacher.predict(x_train, verbose=0)

student = make(32, "student")
student.compile("adam", "categorical_crossentropy", ["accuracy"])
for round in range(2):
    student.fit(x_train, soft, epochs=3, verbose=0, batch_size=64)
    print("round", round, "done"); student.save_weights(f"student-{round}.weights.h5")
labels = np.argmax(student.predict(x_test), axis=1)
print("Test accuracy:", np.mean(labels == y_test))
