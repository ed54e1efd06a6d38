"""Words that train inside the image, and what a training wrote."""

import json

TRAIN = ("python", "-m", "toolkit.trainers.mnist", "--output", "/out")
TWO = ("mpirun", "--bind-to", "none", "-n", "2")


def metrics(folder):
    header, *epochs, result = (
        json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()
    )
    assert [one["record"] for one in (header, *epochs, result)] == [
        "header",
        *["epoch"] * len(epochs),
        "result",
    ]
    return header, epochs, result
