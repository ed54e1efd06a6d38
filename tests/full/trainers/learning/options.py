"""Print the effects of command-line options, as JSON on the last line; runs in the training image.

With an argument, the program runs as one of two ranks. ``two-ranks`` trains on images of which one is
truncated, and ``masks`` records the dropout of each rank.
"""

import json
import os
import struct
import sys
import time
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

from toolkit.trainers import cifar10, imagenet, imagenet_synthetic, mnist_cnn
from toolkit.trainers.command import parse, run
from toolkit.trainers.data import folder, records
from toolkit.trainers.data.sources import Samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.trainer import Trainer

FOUND, OUT, DATA = {}, Path("/out"), Path("/data")
SIDE, COUNT = 8, 64


def model(side=SIDE, *, width=4):
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [layers.Input((side, side, 3)), layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(width)]
    )


def noise(_, count=COUNT):
    random = np.random.default_rng(1)
    return (
        Samples(random.integers(0, 256, (count, SIDE, SIDE, 3), np.uint8), random.integers(0, 4, count)),
    ) * 2


LEARNING = Learning(learning_rate=0.01, optimizer="sgd")
NOISE = Trainer("noise", model, noise, epochs=1, batch_size=8, learning=LEARNING)
PICTURES = Trainer(
    "pictures", model, partial(folder.load, side=SIDE), data="images", fetched=False, epochs=1, batch_size=8,
    learning=LEARNING,
)  # fmt: skip
PACKED = Trainer(
    "packed", model, partial(records.load, side=SIDE, classes=4), data="images", fetched=False, epochs=1,
    batch_size=8, learning=LEARNING,
)  # fmt: skip


def go(trainer, name, *words):
    try:
        run(trainer, ["--output", str(OUT / name), *words])
    except SystemExit as end:
        file = OUT / name / "metrics.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return end.code, [line for line in lines if line["record"] != "start"]


def checkpoints(name):
    return sorted(path.name for path in (OUT / name / "checkpoints").iterdir())


def trainings():
    losses = [go(NOISE, f"seed-{seed}", "--seed", seed)[1][1]["loss"] for seed in "122"]
    FOUND["losses of seeds 1, 2, 2"] = losses
    go(NOISE, "kept", "--epochs", "4", "--keep", "2")
    FOUND["kept"] = checkpoints("kept")
    go(NOISE, "kept", "--epochs", "5", "--keep", "1")
    FOUND["kept after 5"] = checkpoints("kept")
    _, lines = go(NOISE, "kept", "--epochs", "2", "--fresh")
    FOUND["anew"] = [line["record"] for line in lines]
    go(NOISE, "often", "--batch-size", "1", "--checkpoint-seconds", "0.0001", "--keep", "9")
    FOUND["often"] = checkpoints("often")


def image(number):
    encode = tf.io.encode_jpeg if number % 2 else tf.io.encode_png
    return encode(np.random.default_rng(number).integers(0, 256, (40, 40, 3), np.uint8)).numpy()


def png(_):
    """Return a PNG made without TensorFlow, which the trainer must configure before any computation."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 40, 8, 2, 0, 0, 0))
    rows = zlib.compress(b"".join(b"\0" + os.urandom(3 * 40) for _ in range(40)))
    return b"\x89PNG\r\n\x1a\n" + size + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def folders(where, image=image):
    for part, count in (("train", 24), ("val", 8)):
        for number in range(count):
            path = where / part / f"class-{number % 4}" / f"{number}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(image(number))
    return where


def example(encoded, label):
    content = tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded]))
    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
    features = tf.train.Features(feature={"image/encoded": content, "image/class/label": label})
    return tf.train.Example(features=features).SerializeToString()


def pictures():
    whole = folders(DATA / "whole")
    FOUND["whole"] = go(PICTURES, "whole", "--data", str(whole))[0]
    for name, part, spoil in (
        ("cut", "train/class-3/3.jpg", lambda path: path.write_bytes(path.read_bytes()[:700])),
        ("png", "train/class-2/2.jpg", lambda path: path.write_bytes(path.read_bytes()[:200])),
        ("page", "train/class-1/1.jpg", lambda path: path.write_text("<html>log in first</html>")),
        ("gone", "train/class-0/4.jpg", lambda path: (path.unlink(), path.symlink_to("/none"))),
        ("test", "val/class-1/5.jpg", lambda path: path.write_bytes(path.read_bytes()[:700])),
    ):
        where = folders(DATA / name)
        spoil(where / part)
        FOUND[name] = go(PICTURES, name, "--data", str(where))[0]
    for name, size, label in (("packed", 700, 4), ("zero", None, 0), ("many", None, 5)):
        packed = DATA / name
        packed.mkdir()
        for part in ("train", "validation"):
            with tf.io.TFRecordWriter(str(packed / f"{part}-00000-of-00001")) as file:
                for number in range(16):
                    seventh = (image(number)[:size], label)
                    file.write(example(*(seventh if number == 7 else (image(number), number % 4 + 1))))
        FOUND[name] = go(PACKED, name, "--data", str(packed))[0]


class Slow:
    def __init__(self, seconds):
        self._seconds = seconds

    def __len__(self):
        return COUNT

    def item(self, number):
        def wait(number):
            time.sleep(self._seconds)
            return np.int32(number % 4)

        kind = tf.ensure_shape(tf.numpy_function(wait, [number], tf.int32), ())
        return tf.zeros((SIDE, SIDE, 3), tf.uint8), kind


def waiting():
    # The first epoch builds the graph. In later epochs, a busy machine may delay samples or steps, so use the
    # epoch with the smallest delay.
    for name, seconds, width, clearest in (("slow", 0.05, 4, max), ("quick", 0.0, 100_000, min)):
        trainer = Trainer(
            name,
            partial(model, width=width),
            lambda _, seconds=seconds: (Slow(seconds), noise(None)[1]),
            epochs=6,
            batch_size=8,
            learning=LEARNING,
        )
        _, lines = go(trainer, name)
        epochs = [line for line in lines if line["record"] == "epoch"][1:]
        FOUND[f"{name} waits"] = clearest(line["input_seconds"] / line["seconds"] for line in epochs)
    FOUND["in memory"] = [
        line["input_seconds"] for line in go(NOISE, "memory")[1] if line["record"] == "epoch"
    ]


def sizes():
    def made(trainer, *words):
        given = ("--data", str(DATA / "whole")) if trainer.data else ()
        trainer = parse(trainer, [*given, "--output", "/out", *words])[0]
        built = trainer.model()
        return built.count_params(), [list(layer.output_shape[1:3]) for layer in built.layers][1]

    net = ("--model", "MobileNet", "--image-size")
    FOUND["mnist-cnn"] = [made(mnist_cnn.TRAINER, "--model", name)[0] for name in ("classic", "tutorial")]
    FOUND["cifar10"] = [made(cifar10.TRAINER, "--model", name)[0] for name in ("resnet8", "resnet14")]
    FOUND["cifar10 resized"] = [made(cifar10.TRAINER, *net, side) for side in ("64", "96")]
    FOUND["imagenet"] = made(imagenet.TRAINER, *net, "64")
    FOUND["imagenet-synthetic"] = made(imagenet_synthetic.TRAINER, *net, "64")


def measured():
    words = ("--model", "MobileNet", "--image-size", "32", "--batch-size", "2")
    status, lines = go(
        imagenet_synthetic.TRAINER, "timed", *words, "--warm-up", "1", "--steps", "2", "--iterations", "3"
    )
    FOUND["timed"] = [status, lines[0]["warm_up_steps"], [one["images"] for one in lines[1:-1]]]


def two_ranks():
    """Train as one of two ranks; each rank has its own folder of images, in which one image is truncated."""
    where = folders(DATA / os.environ["OMPI_COMM_WORLD_RANK"], png)
    cut = where / "train/class-3/3.jpg"
    cut.write_bytes(cut.read_bytes()[:700])
    run(PICTURES, ["--output", str(OUT), "--strategy", "horovod", "--data", str(where)])


def masks():
    """Write the sum of this rank's initial weights, and the numbers that dropout keeps in each step."""
    file = f"file://{OUT}/masks-{os.environ['OMPI_COMM_WORLD_RANK']}"

    def dropping():
        def seen(values):
            tf.print(tf.cast(values[0] > 0, tf.int32), summarize=-1, output_stream=file)
            return values

        layers = tf.keras.layers
        lines = [layers.Dropout(0.5), layers.Lambda(seen), layers.Dense(4)]
        made = tf.keras.Sequential([layers.Input((32,)), *lines])
        tf.print(tf.reduce_sum(made.weights[0]), output_stream=file)
        return made

    samples = Samples(np.ones((16, 32), "float32"), np.zeros(16, "int32"))
    trainer = Trainer("masks", dropping, lambda _: (samples,) * 2, 1, 2, LEARNING)
    run(trainer, ["--output", str(OUT / "masks"), "--strategy", "horovod"])


if sys.argv[1:]:
    {"two-ranks": two_ranks, "masks": masks}[sys.argv[1]]()
for part in (trainings, pictures, waiting, sizes, measured):
    part()
print(json.dumps(FOUND))
