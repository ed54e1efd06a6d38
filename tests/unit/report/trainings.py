"""Metrics in the format of the trainers, and the record of their job."""

import json
from pathlib import Path

import msgspec

from tests.unit.launch.examples import RECORD

HEADER = {
    "record": "header",
    "schema": "toolkit.metrics/1",
    "trainer": "mnist",
    "strategy": "horovod",
    "world_size": 2,
    "nodes": 2,
    "threads": 1,
    "batch_size": 32,
    "global_batch_size": 64,
    "epochs": 2,
    "learning_rate": 0.002,
    "seed": 1,
    "samples": 60000,
    "test_samples": 10000,
    "parameters": 407050,
    "start_seconds": 1.5,
    "versions": {"tensorflow": "2.15.1", "horovod": "0.28.1"},
}

EPOCHS = [
    {
        "record": "epoch",
        "epoch": number,
        "seconds": seconds,
        "images": 120000,
        "images_per_second": 120000 / seconds,
        "loss": 0.1 / number,
        "accuracy": 0.95 + number / 100,
        "test_loss": 0.09 / number,
        "test_accuracy": 0.96 + number / 100,
    }
    for number, seconds in ((1, 4.0), (2, 2.0))
]

END = {
    "record": "result",
    "epochs": 2,
    "test_loss": 0.045,
    "test_accuracy": 0.98,
    "seconds": 6.0,
    "images": 240000,
    "images_per_second": 40000.0,
    "model": "model.keras",
}


def lines(*records: dict[str, object]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


COMPLETE = lines(HEADER, *EPOCHS, END)
PARTIAL = lines(HEADER, EPOCHS[0]) + lines(EPOCHS[1])[:40]


def job_folder(folder: Path, metrics: bytes = COMPLETE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_bytes(metrics)
    (folder / "record.json").write_bytes(msgspec.json.encode(RECORD))
    return folder


_TESTED = ("test_loss", "test_accuracy", "model")
BENCHMARK = lines(
    {**HEADER, "trainer": "imagenet-synthetic", "test_samples": 0},
    *({name: value for name, value in one.items() if name not in _TESTED} for one in (*EPOCHS, END)),
)
