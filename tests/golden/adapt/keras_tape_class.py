import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models, losses


class Classifier:
	"""A classifier that is trained batch by batch, without tf.data."""

	def __init__(self, rate=0.1):
		self.net = models.Sequential([layers.Dense(64, "relu"), layers.Dense(10)])
		self.optimizer = tf.keras.optimizers.SGD(rate, momentum=0.9)
		self.loss = losses.SparseCategoricalCrossentropy(from_logits=True)

	@tf.function
	def step(self, x, y):
		with tf.GradientTape() as t:
			loss = self.loss(y, self.net(x, training=True))
		grads = t.gradient(loss, self.net.trainable_weights)
		self.optimizer.apply_gradients(zip(grads, self.net.trainable_weights))
		return loss

	def train(self, x, y, epochs=4, batch=50):
		for epoch in range(epochs):
			order = np.random.permutation(len(x))
			total = 0.0
			for start in range(0, len(x), batch):
				chosen = order[start:start + batch]
				total += float(self.step(x[chosen], y[chosen]))
			print("epoch", epoch, "loss", total)

	def accuracy(self, x, y):
		return float(np.mean(np.argmax(self.net(x).numpy(), axis=1) == y))


def load(kind):
	data = np.load("mnist.npz")
	return data["x_" + kind].reshape(-1, 784).astype("float32") / 255, data["y_" + kind].astype("int64")


if __name__ == "__main__":
	classifier = Classifier()
	classifier.train(*load("train"))
	print("Test accuracy:", classifier.accuracy(*load("test")))
	classifier.net.save_weights("class.weights.h5")
