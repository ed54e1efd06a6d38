"""Train a linear model with softmax in NumPy with float64, by the published formulas of each optimizer."""

import numpy as np

CLASSES, FEATURES, SAMPLES = 3, 8, 52


def samples(seed=7):
    """Return the inputs and classes of 52 samples: in batches of 16 samples, the last batch is smaller."""
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(SAMPLES, FEATURES)).astype("float32")
    return inputs, random.integers(0, CLASSES, SAMPLES).astype("int32")


def weights(seed=3):
    random = np.random.default_rng(seed)
    return [random.normal(size=(FEATURES, CLASSES)) * 0.5, random.normal(size=CLASSES) * 0.1]


def gradients(now, inputs, classes, smoothing=0.0):
    logits = inputs.astype("float64") @ now[0] + now[1]
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    wanted = np.eye(CLASSES)[classes] * (1 - smoothing) + smoothing / CLASSES
    loss = -(wanted * np.log(likely)).sum(axis=1).mean()
    off = (likely - wanted) / len(classes)
    return loss, [inputs.astype("float64").T @ off, off.sum(axis=0)]


class Sgd:
    """SGD by Goyal et al. 2017, equation 9: the velocity does not include the learning
    rate, so the learning rate may change.
    """

    def __init__(self, momentum=0.0, decay=0.0, nesterov=False):
        self.momentum, self.decay, self.nesterov, self.velocity = momentum, decay, nesterov, [0.0, 0.0]

    def step(self, now, found, rate):
        for i, raw in enumerate(found):
            gradient = raw + (self.decay * now[i] if now[i].ndim > 1 else 0.0)
            self.velocity[i] = self.momentum * self.velocity[i] + gradient
            ahead = self.momentum * self.velocity[i] + gradient
            now[i] = now[i] - rate * (ahead if self.nesterov else self.velocity[i])


class Uncorrected(Sgd):
    """SGD by Goyal et al. 2017, equation 10, without momentum correction: the velocity includes the
    learning rates of earlier steps.
    """

    def step(self, now, found, rate):
        for i, gradient in enumerate(found):
            self.velocity[i] = self.momentum * self.velocity[i] + rate * gradient
            now[i] = now[i] - self.velocity[i]


class AdamW:
    """AdamW by Loshchilov and Hutter 2019, algorithm 2."""

    def __init__(self, decay=0.0):
        self.decay, self.mean, self.square, self.count = decay, [0.0, 0.0], [0.0, 0.0], 0

    def moments(self, i, gradient):
        self.mean[i] = 0.9 * self.mean[i] + 0.1 * gradient
        self.square[i] = 0.999 * self.square[i] + 0.001 * gradient**2
        return self.mean[i] / (1 - 0.9**self.count), self.square[i] / (1 - 0.999**self.count)

    def step(self, now, found, rate):
        self.count += 1
        for i, gradient in enumerate(found):
            mean, square = self.moments(i, gradient)
            decayed = self.decay * now[i] if now[i].ndim > 1 else 0.0
            now[i] = now[i] - rate * (mean / (np.sqrt(square) + 1e-7) + decayed)


class Lamb(AdamW):
    """LAMB by You et al. 2020, algorithm 2; biases are updated as by Adam."""

    def step(self, now, found, rate):
        self.count += 1
        for i, gradient in enumerate(found):
            mean, square = self.moments(i, gradient)
            update = mean / (np.sqrt(square) + 1e-6)
            ratio = 1.0
            if now[i].ndim > 1:
                update = update + self.decay * now[i]
                ratio = np.linalg.norm(now[i]) / np.linalg.norm(update)
            now[i] = now[i] - rate * ratio * update


class Lars(Sgd):
    """LARS by You, Gitman, Ginsburg 2017, algorithm 1; biases are updated as by SGD with momentum."""

    trust = 0.02

    def step(self, now, found, rate):
        for i, gradient in enumerate(found):
            local, decayed = 1.0, 0.0
            if now[i].ndim > 1:
                norm = np.linalg.norm(now[i])
                local = self.trust * norm / (np.linalg.norm(gradient) + self.decay * norm)
                decayed = self.decay * now[i]
            self.velocity[i] = self.momentum * self.velocity[i] + rate * local * (gradient + decayed)
            now[i] = now[i] - self.velocity[i]


def train(optimizer, batches, rates, smoothing=0.0, l2=0.0):
    now = weights()
    for (inputs, classes), rate in zip(batches, rates, strict=True):
        _, found = gradients(now, inputs, classes, smoothing)
        found[0] = found[0] + 2 * l2 * now[0]
        optimizer.step(now, found, rate)
    return now


def furthest(ours, theirs):
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in zip(ours, theirs, strict=True))
