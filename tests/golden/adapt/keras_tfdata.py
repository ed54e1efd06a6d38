"""Digits by tf.data, with a schedule of the learning rate."""
import numpy as np
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
data = np.load("mnist.npz")


def scale(image, label):
    return tf.cast(image, tf.float32) / 255.0, label


train_ds = (
    tf.data.Dataset.from_tensor_slices((data["x_train"], data["y_train"]))
    .map(scale, num_parallel_calls=AUTOTUNE)
    .cache()
    .shuffle(10_000)
    .batch(64)
    .prefetch(AUTOTUNE)
)
test_ds = tf.data.Dataset.from_tensor_slices((data["x_test"], data["y_test"])).map(scale).batch(256)

schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.002, decay_steps=500, decay_rate=0.9)
model = tf.keras.models.Sequential()
model.add(tf.keras.layers.Flatten(input_shape=(28, 28)))
model.add(tf.keras.layers.Dense(64, activation="relu"))
model.add(tf.keras.layers.Dropout(0.1))
model.add(tf.keras.layers.Dense(10))
model.compile(
    optimizer=tf.keras.optimizers.Adam(learning_rate=schedule),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
)
model.fit(train_ds, epochs=15, validation_data=test_ds,
          callbacks=[tf.keras.callbacks.TensorBoard(log_dir="logs")])
results = model.evaluate(test_ds, return_dict=True)
print(f"Test accuracy: {results['accuracy']:.4f}")
model.save_weights("tfdata.weights.h5")
