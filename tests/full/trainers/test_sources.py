"""Test the data sources and the DataDistributor in the training image, with TensorFlow and mpi4py."""

import json

import pytest

COUNT = 23

READ = """
import json
import numpy as np
import tensorflow as tf
from pathlib import Path
from toolkit.trainers.data import cifar, folder, records, views
from toolkit.trainers.data.augment import mirrored_and_moved
from toolkit.trainers.data.feed import feed
from toolkit.trainers.data.shares import share
from toolkit.trainers.data.sources import Samples, Source
from toolkit.trainers.data.synthetic import Synthetic

COUNT, SIDE = 23, 16
data, found = Path("/data"), {}

# An image of one colour, which tells its number and outlives both packings.
def image(number):
    return np.full((20 + number % 5, 24, 3), number * 10, np.uint8)

def example(number, key="image/encoded"):
    content = tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded[number]]))
    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 4 + 1]))
    features = tf.train.Features(feature={key: content, "image/class/label": label})
    return tf.train.Example(features=features).SerializeToString()

encoded = [(tf.io.encode_jpeg if n % 2 else tf.io.encode_png)(image(n)).numpy() for n in range(COUNT)]
for part in ("train", "val"):
    for number in range(COUNT):
        path = data / "folder" / part / f"class-{number % 4}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded[number])
for name, key in (("records", "image/encoded"), ("strange", "image/garbled")):
    (data / name).mkdir()
    for part in ("train", "validation"):
        for shard in range(3):
            with tf.io.TFRecordWriter(str(data / name / f"{part}-{shard:05d}-of-00003")) as file:
                for number in range(shard, COUNT, 3):
                    file.write(example(number, key))

def seen(source, size, batch, turn):
    "Numbers of the samples that ranks get in one epoch, by what is on the images."
    got = []
    for rank in range(size):
        tables = share(count=COUNT, batch=batch, rank=rank, size=size, epoch=turn, seed=1, passes=1)
        for table in tables:
            portions = source.open(table, turn)
            for step in range(len(table)):
                inputs, classes = source.batch(portions.take(step, step + 1), tf.constant(0))
                assert inputs.shape[1:] == (SIDE, SIDE, 3) and inputs.dtype == tf.uint8, inputs
                numbers = np.round(inputs.numpy().astype(float).mean((1, 2, 3)) / 10).astype(int)
                got += zip(numbers.tolist(), classes.numpy().tolist())
    return got

train = folder.load(data / "folder", SIDE, seed=3)[0]
sources = {
    "memory": Samples(
        np.stack([tf.image.resize(image(n), (SIDE, SIDE)).numpy() for n in range(COUNT)]).astype("uint8"),
        np.arange(COUNT) % 4,
    ),
    "folder": train,
    "records": records.load(data / "records", SIDE, seed=3)[0],
}
for name, source in sources.items():
    assert len(source) == COUNT and (name == "memory" or isinstance(source, Source))
    ready = feed(source)
    found[name] = {size: seen(ready, size, 4, size) for size in (1, 2, 3, 4)}
    found[name]["next"] = seen(ready, 1, 23, 2)

# Views: the same part for the same turn and sample, another in another turn; the centre is always the same.
rows, columns = np.mgrid[0:240:2, 0:200:2]
gradient = np.stack([rows, columns, np.full_like(rows, 9)], -1).astype("uint8")
(data / "g.png").write_bytes(tf.io.encode_png(gradient).numpy())
(data / "g.jpg").write_bytes(tf.io.encode_jpeg(gradient, quality=100).numpy())
def views_of(path, seed):
    images = folder.Images([str(path)] * 5, range(5), SIDE, seed)
    return [images.item(tf.constant(number))[0].numpy().tolist() for number in (0, 1, 5, 6)]
found["png"], found["again"], found["other seed"] = (views_of(data / "g.png", seed) for seed in (3, 3, 4))
found["jpeg"] = views_of(data / "g.jpg", 3)
found["centre"] = views_of(data / "g.png", None)
found["centre of jpeg"] = views_of(data / "g.jpg", None)
small = tf.constant(gradient[:32, :32])
draws = [views.draw(3, 0, tf.constant(n)) for n in range(40)]
found["moved"] = [mirrored_and_moved(small[tf.newaxis], draw)[0].numpy().tolist() for draw in draws]
found["small"] = small.numpy().tolist()

synthetic = Synthetic((SIDE, SIDE, 3), 7, 50)
items = [synthetic.item(tf.constant(n)) for n in (0, 1, 50)]
found["synthetic"] = [(one.numpy().tolist(), int(kind)) for one, kind in items]
try:
    records.load(data / "strange", SIDE)
except Exception as error:
    found["strange"] = f"{type(error).__name__}: {error}"
(data / "page.jpg").write_text("<html>log in first</html>")
try:
    next(iter(tf.data.Dataset.range(1).map(folder.Images([str(data / "page.jpg")], [0], SIDE).item)))
except Exception as error:
    found["page"] = str(error)
one, test = cifar.load(Path("/cifar"))
found["cifar"] = [one.inputs.shape, np.bincount(one.classes).tolist(), np.bincount(test.classes).tolist()]
print("FOUND", json.dumps(found))
"""

SHARE = """
import json, sys
from mpi4py import MPI
from toolkit.trainers.distributor import DataDistributionError, DataDistributor
world, found = MPI.COMM_WORLD, {}
for count in (8, 10, 23):
    names = DataDistributor(world)(lambda: [f"file-{number}" for number in range(count)])
    found[count] = world.gather(names())
def wrong():
    raise FileNotFoundError("data")
try:
    DataDistributor(world)(wrong)()
except DataDistributionError as error:
    found["wrong"] = world.gather(str(error))
try:
    DataDistributor(world)(lambda: [1] * (world.Get_size() - 1))()
except DataDistributionError as error:
    found["few"] = world.gather(str(error))
if world.Get_rank() == 0:
    print("FOUND", json.dumps(found), flush=True)
world.barrier()
DataDistributor(world, shutdown_on_error=True)(wrong)()
print("went on", flush=True)
"""


def answer(ran):
    (line,) = (line for line in ran.lines if line.startswith("FOUND "))
    return json.loads(line.removeprefix("FOUND "))


@pytest.fixture(scope="module")
def cifar10(tmp_path_factory):
    """Return a small folder in CIFAR-10's format; test_data.py tests the full data set."""
    folder = tmp_path_factory.mktemp("cifar")
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (folder / f"{name}.bin").write_bytes(b"".join(bytes((kind,)) + bytes(3072) for kind in range(10)))
    return folder


@pytest.fixture(scope="module")
def found(inside, cifar10, tmp_path_factory):
    """Return the pixels that TensorFlow read from the same images in each format."""
    ran = inside("python", "-c", READ, binds={tmp_path_factory.mktemp("data"): "/data", cifar10: "/cifar:ro"})
    assert ran.ok, ran.lines
    return answer(ran)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("source", ["memory", "folder", "records"])
def test_each_sample_is_seen_once_in_an_epoch_with_its_class(found, source, size):
    epoch = found[source][str(size)]
    assert all(kind == number % 4 for number, kind in epoch)
    assert sorted(number for number, _ in epoch) == list(range(COUNT))


@pytest.mark.parametrize("source", ["memory", "folder", "records"])
def test_the_shuffle_is_another_one_in_each_epoch(found, source):
    assert found[source]["1"] != found[source]["next"]
    assert sorted(found[source]["1"]) == sorted(found[source]["next"])


def test_a_part_is_the_same_for_the_same_turn_and_sample_only(found):
    assert found["png"] == found["again"]
    assert all(one != other for one, other in zip(found["png"], found["other seed"], strict=True))
    parts = [json.dumps(one) for one in found["png"]]
    assert len(set(parts)) == 4


def test_a_jpeg_is_seen_as_a_png_is(found):
    for name, other in (("png", "jpeg"), ("centre", "centre of jpeg")):
        assert distance(found[name], found[other]) < 8


def distance(one, other):
    flat = [
        [value for image in views for row in image for pixel in row for value in pixel]
        for views in (one, other)
    ]
    return max(abs(a - b) for a, b in zip(*flat, strict=True))


def test_the_centre_is_the_middle_seven_eighths_of_the_shorter_side(found):
    image = found["centre"][0]
    assert all(one == image for one in found["centre"])
    # Each of the 120 rows and 100 columns is brighter by 2 than the previous one. The crop has the middle 88
    # rows and columns.
    top, left = image[0][0][0], image[0][0][1]
    bottom, right = image[-1][-1][0], image[-1][-1][1]
    assert abs(top - 2 * (16 + 88 / 32)) <= 2
    assert abs(left - 2 * (6 + 88 / 32)) <= 2
    assert abs(bottom - 2 * (104 - 88 / 32)) <= 2
    assert abs(right - 2 * (94 - 88 / 32)) <= 2


def test_small_images_are_moved_by_up_to_four_pixels_and_mirrored_half_of_the_time(found):
    moves, mirrored = set(), 0
    whole = found["small"]
    for image in found["moved"]:
        # Augmentation only shifts the middle of the image, so each row and column is still brighter by 2 than
        # the previous one.
        down, across = image[16][16][0] - whole[16][16][0], image[16][17][1] - image[16][16][1]
        mirrored += across < 0
        moves.add(down // 2)
    assert 8 <= mirrored <= 32
    assert len(moves) > 5
    assert max(map(abs, moves)) <= 4


def test_samples_of_nothing_are_the_same_in_each_turn(found):
    first, second, again = found["synthetic"]
    assert first == again != second


def test_records_with_other_keys_are_refused_in_a_sentence(found):
    assert found["strange"].startswith("Trouble: /data/strange/train-00000-of-00003: its first record is no")


def test_a_file_that_is_no_image_is_named(found):
    assert "/data/page.jpg is neither a JPEG nor a PNG image" in found["page"]


def test_cifars_records_are_read(found):
    assert found["cifar"] == [[50, 32, 32, 3], [5] * 10, [1] * 10]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_mpi_ranks_share_out_what_the_first_one_lists_and_end_together(inside, size):
    ran = inside("mpirun", "--bind-to", "none", "--oversubscribe", "-n", str(size), "python", "-c", SHARE)
    assert ran.status == 1, ran.lines
    shared = answer(ran)
    for count in (8, 10, 23):
        items = [f"file-{number}" for number in range(count)]
        assert shared[str(count)] == [items[rank::size] for rank in range(size)]
    assert shared["few"] == [f"there are only {size - 1} items for {size} ranks"] * size
    told = "the function that lists the items failed: FileNotFoundError: data"
    assert shared["wrong"] == [told] * size
    assert sum(f"data distribution: {told}" in line for line in ran.lines) == 1
    assert not any("went on" in line or "Traceback" in line for line in ran.lines)
