"""Train on whole data sets through ``toolkit launch``: python -m tests.benchmarks.accuracy.run [--page FILE].

The benchmark needs its own virtual cluster, a SIF file, MNIST and CIFAR-10, and about half an hour on two
cores. It saves each finished training in build/bench/accuracy.json, and skips trainings that are saved for
the same image.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.benchmarks.accuracy.cases import Case, Reached, cases
from tests.benchmarks.accuracy.page import Found, page
from tests.services.program import ROOT, toolkit

_HOURS = "02:00:00"
_SECONDS = 7200


@contextmanager
def cluster(name: str, *, stays: bool) -> Iterator[None]:
    toolkit("cluster", "up", "--name", name, timeout=1200)
    try:
        yield
    finally:
        if not stays:
            toolkit("cluster", "down", "--name", name)


def train(case: Case, where: tuple[str, ...]) -> Reached:
    options, _, words = " ".join(case.launch).partition(" -- ")
    said = toolkit(
        "launch", *where, *options.split(), "--time", _HOURS, "--json", "--", *words.split(), timeout=_SECONDS
    )
    job = json.loads(said.stdout)["key"]
    with tempfile.TemporaryDirectory() as folder:
        toolkit("report", job, "--no-plot", "--output", folder)
        result = json.loads(Path(folder, "result.json").read_text())
    return Reached(
        case=case,
        accuracy=result["test_accuracy"],
        seconds=result["seconds"],
        world_size=result["world_size"],
        epochs=result["epochs"],
        batch_size=result["batch_size"],
        images=result["images"],
        mode=result["mode"],
        image=result["image_digest"],
    )


def kept(path: Path) -> Found:
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=Found)
    return Found(started=datetime.now(UTC).isoformat(timespec="seconds"), processors=os.cpu_count() or 1)


def main() -> int:
    """Run the trainings that have no result for this image, and write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sif", type=Path, default=ROOT / "build" / "images" / "tf2.21-cpu.sif")
    options.add_argument("--cluster", default="accuracy", help="name of the virtual cluster")
    options.add_argument("--keep-cluster", action="store_true", help="leave it up")
    options.add_argument("--only", default="", help="cases with this in their name")
    options.add_argument("--page", type=Path, help="also write the page there")
    asked = options.parse_args()
    target = ROOT / "build" / "bench" / "accuracy.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    found = kept(target)
    image = "sha256:" + json.loads(toolkit("image", "inspect", str(asked.sif), "--json").stdout)[
        "digest"
    ].removeprefix("sha256:")
    where = ("--cluster", asked.cluster, "--image", str(asked.sif))
    with cluster(asked.cluster, stays=asked.keep_cluster):
        for case in cases():
            if asked.only not in case.group or any(
                one.case == case and one.image == image for one in found.reached
            ):
                continue
            one = train(case, where)
            found.reached = [old for old in found.reached if old.case != case] + [one]
            target.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
            print(f"{case.group}: {one.accuracy:.4f} in {one.seconds:.0f} s", file=sys.stderr, flush=True)
    print(page(found))
    if asked.page:
        asked.page.write_text(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
