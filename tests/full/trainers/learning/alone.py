"""Print the effects of each learning option in one process, as JSON on the last line; runs in the training
image.
"""

import json
import math
import sys
import tempfile

sys.path.insert(0, __file__.rpartition("/")[0])

import numpy as np
import papers
import small
import tensorflow as tf

from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning import precision
from toolkit.trainers.learning.biases import spare_biases
from toolkit.trainers.learning.build import by_xla
from toolkit.trainers.learning.dropout import draw_bits, drop_out
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.pooling import pool_first
from toolkit.trainers.learning.step import losses
from toolkit.trainers.strategies.single import Single
from toolkit.trainers.training import memory, trial
from toolkit.trainers.training.checkpoint import EpochPart
from toolkit.trainers.training.trial import Alone

WORLD = Alone()
FOUND = {}
BATCHES, DONE = small.batches()
EACH = small.BATCH / papers.SAMPLES


def held(name, paper, rates=0.1, smoothing=0.0, l2=0.0, model=small.linear, **chosen):
    """Train with an option and with its published formulas, and record the distance between the weights."""
    rates = np.broadcast_to(rates, len(BATCHES))
    theirs = papers.train(paper, BATCHES, rates, smoothing, l2)
    loop, _ = small.train(WORLD, model=model, **chosen)
    FOUND[name] = papers.furthest(small.weights(loop), theirs)
    return loop


def optimizers():
    held("sgd", papers.Sgd())
    held("momentum", papers.Sgd(0.9), momentum=0.9)
    held("nesterov", papers.Sgd(0.9, nesterov=True), momentum=0.9, nesterov=True)
    held("sgd weight decay", papers.Sgd(0.9, decay=0.1), momentum=0.9, weight_decay=0.1)
    held("adam", papers.AdamW(), optimizer="adam")
    held("adam weight decay", papers.AdamW(0.1), optimizer="adam", weight_decay=0.1)
    held("lars", papers.Lars(0.9, decay=0.1), optimizer="lars", momentum=0.9, weight_decay=0.1, trust=0.02)
    held("lamb", papers.Lamb(0.1), optimizer="lamb", weight_decay=0.1)


def goes_on(chosen):
    learning = Learning(0.1, optimizer="sgd", **chosen).of_batch(small.BATCH)
    whole, _ = small.train(WORLD, learning)
    loops = [small.loop(WORLD, learning) for _ in range(2)]
    loops[0].epoch(0, 1, EpochPart(), lambda part, steps: steps)
    loops[1].restore(loops[0].state())
    for number in range(1, small.EPOCHS):
        loops[1].epoch(number, 1, EpochPart(), lambda part, steps: steps)
    return papers.furthest(small.weights(whole), small.weights(loops[1]))


class Four(Alone):
    """A world of one process that computes its learning rate as for four ranks."""

    averaged = 4


def with_fewer():
    """Return the learning rate of four ranks, and of one rank that resumes their training."""
    learning = Learning(0.1, optimizer="sgd", warmup_epochs=1.0).of_batch(small.BATCH)
    four, one = (small.loop(world, learning) for world in (Four(), WORLD))
    for number in range(2):
        four.epoch(number, 1, EpochPart(), lambda part, steps: steps)
    one.restore(four.state())
    one.epoch(2, 1, EpochPart(), lambda part, steps: steps)
    return [four.learning_rate, one.learning_rate]


def rates():
    warm = np.where(DONE < 2, 0.02 + 0.08 * DONE / 2, 0.1)
    chosen = {"warmup_epochs": 2.0, "warmup_from": 0.02, "momentum": 0.9}
    held("corrected", papers.Sgd(0.9), warm, **chosen)
    held("uncorrected", papers.Uncorrected(0.9), warm, **chosen, momentum_correction=False)
    loop, _ = small.train(WORLD, **chosen, momentum_correction=False)
    FOUND["correction changes"] = papers.furthest(
        small.weights(loop), papers.train(papers.Sgd(0.9), BATCHES, warm)
    )
    ahead = {**chosen, "nesterov": True}
    held("nesterov corrected", papers.Sgd(0.9, nesterov=True), warm, **ahead)
    held("nesterov decayed", papers.Sgd(0.9, 0.1, nesterov=True), warm, **ahead, weight_decay=0.1)
    FOUND["goes on"] = goes_on({**chosen, "decay": "cosine"})
    FOUND["looks ahead and goes on"] = goes_on({**ahead, "decay": "cosine"})
    FOUND["rates of four and of one"] = with_fewer()
    left = np.clip((DONE - 1) / 2, 0, 1)
    begun = np.where(DONE < 1, 0.02 + 0.08 * DONE, 0)
    after = {"warmup_epochs": 1.0, "warmup_from": 0.02}
    held(
        "cosine",
        papers.Sgd(),
        begun + (DONE >= 1) * 0.05 * (1 + np.cos(np.pi * left)),
        decay="cosine",
        **after,
    )
    held("polynomial", papers.Sgd(), begun + (DONE >= 1) * 0.1 * (1 - left) ** 2, decay="polynomial", **after)
    held("exponential", papers.Sgd(), 0.1 * 0.5**DONE, decay="exponential", decay_factor=0.5)
    stepped = 0.1 * np.where(DONE >= 2, 0.25, np.where(DONE >= 1, 0.5, 1.0))
    held("step", papers.Sgd(), stepped, decay="step", decay_factor=0.5, decay_at=(1.0, 2.0))
    _, seen = small.train(WORLD, decay="step", decay_at=(1.0, 2.0))
    FOUND["step rates"] = [rate for _, rate in seen]
    _, seen = small.train(WORLD, reference_batch=4)
    FOUND["reference batch rate"] = seen[-1][1]


def steps():
    held("label smoothing", papers.Sgd(), smoothing=0.2, label_smoothing=0.2)
    held("regularised", papers.Sgd(), l2=0.05, model=lambda: small.linear(l2=0.05))
    logits = np.array([[2.0, -1.0, 0.5]])
    smoothed = float(losses(tf.constant(logits), tf.constant([1]), 0.3)[0])
    log = logits[0] - math.log(np.exp(logits[0]).sum())
    FOUND["smoothed loss"] = [smoothed, -0.7 * log[1] - 0.1 * log.sum()]
    whole, _ = small.train(WORLD, momentum=0.9, scaling="none")
    pieces, _ = small.train(WORLD, momentum=0.9, scaling="none", batch=4, accumulate=4)
    FOUND["accumulated"] = papers.furthest(small.weights(whole), small.weights(pieces))
    _, seen = small.train(WORLD, batch=4, accumulate=4)
    FOUND["accumulated rate"] = seen[-1][1]
    for name, chosen in (("sgd", {"momentum": 0.9}), ("adam", {"optimizer": "adam"})):
        chosen |= {"learning_rate": 0.01, "weight_decay": 0.1, "scaling": "none"}
        chosen |= {"model": small.embedded, "data": small.words()}
        whole, _ = small.train(WORLD, **chosen)
        pieces, _ = small.train(WORLD, batch=4, accumulate=4, **chosen)
        FOUND[f"embedded, {name}"] = papers.furthest(small.weights(whole), small.weights(pieces))
    once, again = (small.weights(small.train(WORLD, momentum=0.9)[0]) for _ in range(2))
    FOUND["same twice"] = all((a == b).all() for a, b in zip(once, again, strict=True))


def compiled():
    plain, _ = small.train(WORLD, momentum=0.9)
    ours, _ = small.train(WORLD, momentum=0.9, xla="on")
    FOUND["xla"] = papers.furthest(small.weights(plain), small.weights(ours))
    for name, loop in (("plain", plain), ("xla", ours)):
        functions = loop._train.get_concrete_function().graph.as_graph_def().library.function
        FOUND[f"{name} compiled"] = any(one.attr["_XlaMustCompile"].b for one in functions)
    FOUND["auto"] = by_xla(Learning(0.1, xla="auto"))


def widths():
    chosen = {"momentum": 0.9, "batch": 10}
    known, any_width = (small.train(world, **chosen)[0] for world in (Single(), WORLD))
    FOUND["widths"] = list(known._train._compiled)
    FOUND["widths apart"] = papers.furthest(small.weights(known), small.weights(any_width))


def mixed():
    plain = small.weights(small.train(WORLD)[0])
    for kind in ("bfloat16", "float16"):
        loop, _ = small.train(WORLD, mixed_precision=kind)
        FOUND[kind] = papers.furthest(small.weights(loop), plain)
        dense = loop.model.layers[-1]
        FOUND[f"{kind} types"] = [dense.compute_dtype, dense.variable_dtype]
    # float16 represents these gradients with one or two bits, unless the loss is scaled up.
    inputs, classes = papers.samples()
    faint = {"data": (inputs * 1e-5, classes), "batch": papers.SAMPLES, "epochs": 1, "learning_rate": 1e4}
    moved = {}
    keep = precision.scaling
    for name, kind, scale in (
        ("off", "off", keep),
        ("scaled", "float16", keep),
        ("bare", "float16", lambda o: o),
    ):
        precision.scaling = scale
        loop, _ = small.train(WORLD, mixed_precision=kind, **faint)
        moved[name] = small.weights(loop)[0] - papers.weights()[0]
    precision.scaling = keep
    largest = np.abs(moved["off"]).max()
    for name in ("scaled", "bare"):
        FOUND[f"faint, {name}"] = float(np.abs(moved[name] - moved["off"]).max() / largest)
    precision.compute_in("off")


def batch_by_trial():
    inputs, classes = papers.samples()
    data = Samples(np.tile(inputs, (20, 1)), np.tile(classes, 20))
    wanted = Learning(0.1, optimizer="sgd")
    FOUND["batch"] = trial.batch_size(small.linear, data, WORLD, wanted, limit=100, seed=1)
    real, memory.available = memory.available, lambda: 0
    trial._peak = iter(range(0, 1 << 40, 1 << 30)).__next__
    FOUND["batch without memory"] = trial.batch_size(small.linear, data, WORLD, wanted, limit=100, seed=1)
    memory.available = real


def dropout():
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(3)
    ones = tf.ones([800, 500])
    for rate in (0.0, 0.001, 0.1, 0.1875, 0.25, 0.5, 0.9):
        out = drop_out(ones, rate).numpy()
        FOUND[f"dropped {rate}"] = [float((out == 0).mean()), float(out.max())]
    half = drop_out(ones, 0.5).numpy().ravel() == 0
    alike = [np.corrcoef(bits) - np.eye(8) for bits in (half.reshape(-1, 8).T, half.reshape(8, -1))]
    FOUND["dropped together"] = float(np.abs(alike).max())
    FOUND["dropped rows"] = sorted({len(set(row)) for row in drop_out(ones, 0.5, (800, 1)).numpy().tolist()})
    FOUND["dropped by xla"] = float((tf.function(drop_out, jit_compile=True)(ones, 0.25).numpy() == 0).mean())
    FOUND["dropped float16"] = drop_out(tf.cast(ones, tf.float16), 0.25).dtype.name

    inner = tf.keras.Sequential([layers.Input((500,)), layers.Dropout(0.5)])
    model = tf.keras.Sequential([layers.Input((500,)), inner, layers.Dropout(0.25, seed=1)])
    FOUND["layers that draw bits"] = draw_bits(model)
    FOUND["nothing dropped"] = bool((model(ones) == ones).numpy().all())
    with tf.GradientTape() as tape:
        tape.watch(ones)
        out = inner(ones, training=True)
    FOUND["dropped in training"] = float((out.numpy() == 0).mean())
    FOUND["gradient is the mask"] = bool((tape.gradient(out, ones) == out).numpy().all())
    with tempfile.TemporaryDirectory() as folder:
        inner.save(f"{folder}/model.keras")
        FOUND["saved as"] = type(tf.keras.models.load_model(f"{folder}/model.keras").layers[-1]).__module__


def pooled(**options):
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(4)
    around = {
        "filters": 4,
        "padding": "same",
        "bias_initializer": tf.keras.initializers.RandomNormal(),
        **options,
    }
    return tf.keras.Sequential(
        [
            layers.Input((9, 9, 2)),
            layers.Conv2D(kernel_size=3, **around),
            layers.MaxPooling2D(2, padding="same"),
            layers.Flatten(),
            layers.Dense(4),
        ]
    )


def slopes(model, images):
    @tf.function
    def both():
        with tf.GradientTape() as tape:
            out = model(images, training=True)
            loss = tf.reduce_mean(tf.cast(out, tf.float32) ** 2)
        return out, tape.gradient(loss, model.trainable_variables)

    out, found = both()
    return out.numpy(), [one.numpy() for one in found]


def pooling():
    layers = tf.keras.layers
    images = tf.random.stateless_normal([16, 9, 9, 2], (1, 2))
    # With equal pixels, such as a black background, the gradient must go to the same pixel in both models.
    images = tf.concat([images[:8], tf.zeros_like(images[8:])], 0)
    for kind in ("relu", "linear"):
        plain, ours = pooled(activation=kind), pooled(activation=kind)
        FOUND[f"pooled first, {kind}"] = pool_first(ours)
        (out, theirs), (same, found) = slopes(plain, images), slopes(ours, images)
        FOUND[f"pooled alike, {kind}"] = bool((out == same).all())
        FOUND[f"slopes alike, {kind}"] = max(
            float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(found, theirs, strict=True)
        )
    with tempfile.TemporaryDirectory() as folder:
        ours.save(f"{folder}/model.keras")
        again = tf.keras.models.load_model(f"{folder}/model.keras")
        FOUND["saved and pooled alike"] = bool((again(images) == ours(images)).numpy().all())
    precision.compute_in("float16")
    plain, ours = pooled(activation="relu"), pooled(activation="relu")
    pool_first(ours)
    (out, _), (same, _) = slopes(plain, images), slopes(ours, images)
    FOUND["pooled in float16"] = [out.dtype.name, bool((out == same).all())]
    precision.compute_in("off")

    inputs = layers.Input((9, 9, 2))
    seen = layers.Conv2D(3, 3, activation="relu")(inputs)
    read_twice = layers.Conv2D(3, 3, activation="relu")(inputs)
    again_pooled, lonely = layers.MaxPooling2D(), layers.Conv2D(3, 3)(inputs)
    others = {
        "shown": tf.keras.Model(inputs, [seen, layers.MaxPooling2D()(seen)]),
        "read twice": tf.keras.Model(
            inputs, [layers.MaxPooling2D()(read_twice), layers.Flatten()(read_twice)]
        ),
        "pool used twice": tf.keras.Model(inputs, [again_pooled(lonely), again_pooled(inputs)]),
        "without bias": pooled(use_bias=False),
        "in groups": pooled(groups=2),
        "sigmoid": pooled(activation="sigmoid"),
        "penalty": pooled(activity_regularizer="l2"),
    }
    FOUND["left as they are"] = {name: pool_first(model) for name, model in others.items()}
    tower = tf.keras.Sequential([layers.Input((9, 9, 2)), pooled(), layers.Dense(2)])
    FOUND["pooled first within another"] = pool_first(tower)
    FOUND["pooled first in VGG16"] = pool_first(
        tf.keras.applications.VGG16(weights=None, input_shape=(32, 32, 3), classes=10)
    )


def normalised(*, axis=-1, trainable=True, shown=False, **options):
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(5)
    inputs = layers.Input((9, 9, 2))
    seen = layers.Conv2D(4, 3, **{"bias_initializer": tf.keras.initializers.RandomNormal(), **options})(
        inputs
    )
    x = layers.ReLU()(layers.BatchNormalization(axis=axis, trainable=trainable)(seen))
    out = layers.Dense(4)(layers.Flatten()(x))
    return tf.keras.Model(inputs, [out, seen] if shown else out)


def biases():
    images = tf.random.stateless_normal([16, 9, 9, 2], (1, 2))
    plain, ours = normalised(), normalised()
    FOUND["biases spared"] = spare_biases(ours)
    (out, theirs), (same, found) = slopes(plain, images), slopes(ours, images)
    FOUND["spared alike"] = bool((out == same).all())
    FOUND["slopes alike without"] = max(
        float(np.abs(a - b).max()) for a, b in zip(found, theirs, strict=True)
    )
    FOUND["largest slope"] = max(float(np.abs(one).max()) for one in theirs)
    FOUND["slope of the bias"] = [float(np.abs(found[1]).max()), float(np.abs(theirs[1]).max())]
    FOUND["moving mean alike"] = bool(
        (ours.layers[2].moving_mean == plain.layers[2].moving_mean).numpy().all()
    )
    with tempfile.TemporaryDirectory() as folder:
        ours.save(f"{folder}/model.keras")
        again = tf.keras.models.load_model(f"{folder}/model.keras")
        FOUND["saved and spared alike"] = bool((again(images) == ours(images)).numpy().all())
    precision.compute_in("bfloat16")
    mixed_plain, mixed_ours = normalised(), normalised()
    spare_biases(mixed_ours)
    FOUND["spared in bfloat16"] = bool(
        (slopes(mixed_plain, images)[0] == slopes(mixed_ours, images)[0]).all()
    )
    precision.compute_in("off")
    others = {
        "frozen": normalised(trainable=False),
        "over rows": normalised(axis=1),
        "shown": normalised(shown=True),
        "cut before": normalised(activation="relu"),
        "without bias": normalised(use_bias=False),
        "pooled": pooled(),
    }
    FOUND["not spared"] = {name: spare_biases(model) for name, model in others.items()}
    resnet = tf.keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=10)
    FOUND["spared in ResNet50"] = spare_biases(resnet)


for part in (optimizers, rates, steps, compiled, widths, mixed, batch_by_trial, dropout, pooling, biases):
    part()
print(json.dumps(FOUND))
