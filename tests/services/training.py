"""Build commands that train inside the image, and read the files that a training writes."""

import json

TRAIN = ("python", "-m", "toolkit.trainers.mnist", "--output", "/out")
TWO = ("mpirun", "--bind-to", "none", "-n", "2")


def metrics(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    header, *epochs, result = (one for one in lines if one["record"] != "start")
    assert [one["record"] for one in (header, *epochs, result)] == [
        "header",
        *["epoch"] * len(epochs),
        "result",
    ]
    return header, epochs, result
