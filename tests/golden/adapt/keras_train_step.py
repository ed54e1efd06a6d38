import numpy as np
import tensorflow as tf
import keras


class Custom(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def dataset(kind, training):
    data = np.load("mnist.npz")
    ds = tf.data.Dataset.from_tensor_slices((data[f"x_{kind}"].astype("float32") / 255, data[f"y_{kind}"]))
    if training:
        ds = ds.shuffle(20000, seed=1)
    return ds.batch(64)


inputs = keras.Input(shape=(28, 28))
x = keras.layers.Flatten()(inputs)
x = keras.layers.Dense(64, activation="relu")(x)
model = Custom(inputs, keras.layers.Dense(10, activation="softmax")(x))
model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])
train_data = dataset("train", True)
steps = len(train_data)
model.fit(train_data.repeat(), steps_per_epoch=steps, epochs=8, verbose=0)
print("Test accuracy:", model.evaluate(dataset("test", False), verbose=0)[1])
