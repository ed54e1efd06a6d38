"""Commands that train inside the image, and readers of the files of a training."""

import json

TRAIN = ("python", "-m", "toolkit.trainers.mnist", "--output", "/out")
TWO = ("mpirun", "--bind-to", "none", "-n", "2")


def metrics(folder):
    """Return the header, the epochs and the result of a training, without the parts of its start."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    header, *epochs, result = (one for one in lines if one["record"] != "start")
    assert [one["record"] for one in (header, *epochs, result)] == [
        "header",
        *["epoch"] * len(epochs),
        "result",
    ]
    return header, epochs, result
