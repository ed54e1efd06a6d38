"""Measure the conversion of an image: python -m tests.benchmarks.image.run [--recipe NAME] [--page FILE]."""

import argparse
import contextlib
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.image.builds import builds
from tests.benchmarks.image.conversions import PLAIN, all_of_them
from tests.benchmarks.image.page import page
from tests.benchmarks.image.result import Result
from tests.benchmarks.image.starts import starts
from toolkit.errors import CheckFailed, Missing, ToolkitError
from toolkit.image.sifs.packing import PACKINGS
from toolkit.model.progress import Silent
from toolkit.run.docker.builder import contained_apptainer
from toolkit.run.docker.engine import connect, find_image

ROOT = Path(__file__).parents[3]


def measure(recipe: str, program: str, rounds: int, start_rounds: int, *, cold: bool) -> Result:
    client, image = connect(timeout=600), f"toolkit/{recipe}:latest"
    source = find_image(client, image)
    if source is None:
        raise Missing(
            f"{image} is not in the Docker engine", fix=f"build the image: `toolkit image build {recipe}`"
        )
    contained_apptainer(client, Silent())
    bench = ROOT / "build" / "bench"
    bench.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(client), tempfile.TemporaryDirectory(prefix="image.", dir=bench) as work:
        folder, began = Path(work), datetime.now(UTC)
        _say(f"{image}: {rounds} conversions by plain apptainer build, {rounds + 1} by each packing")
        times, same = all_of_them(client, image, folder, rounds)
        sifs = [folder / f"{name}.sif" for name in (PLAIN, *(p.name for p in PACKINGS))]
        _say(f"{start_rounds} rounds of starts: python -c '{program}'")
        started = starts(client, image, sifs, ("python", "-c", program), start_rounds)
        now = find_image(client, image)
        if now is None or now.id != source.id:
            raise CheckFailed(
                f"{image} was built again meanwhile, so nothing can be compared", fix="run it again"
            )
        _say("builds" + (" from nothing," if cold else "") + " after a change, and without one")
        return Result(
            image=image,
            program=program,
            started=began.isoformat(timespec="seconds"),
            processors=os.cpu_count() or 1,
            image_bytes=int(source.attrs["Size"]),
            sizes={sif.stem: sif.stat().st_size for sif in sifs},
            same_bytes=same,
            conversions=times,
            starts=started,
            builds=builds(ROOT, recipe, folder, cold=cold),
        )


def _say(text: str) -> None:
    print(f"bench-image: {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Measure, and write build/bench/image.json and the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--recipe", default="tf2.21-cpu")
    options.add_argument("--program", default="import tensorflow", help="what Python does at a start")
    options.add_argument("--rounds", type=int, default=2, help="conversions by plain apptainer build")
    options.add_argument("--starts", type=int, default=5, help="starts of each SIF, cold and warm")
    options.add_argument("--cold", action="store_true", help="build from an empty cache too (some minutes)")
    options.add_argument("--page", type=Path, help="also write the comparison page there")
    asked = options.parse_args()
    try:
        found = measure(asked.recipe, asked.program, asked.rounds, asked.starts, cold=asked.cold)
    except ToolkitError as error:
        print(f"bench-image: {error}", *error.detail, error.fix, sep="\n  ", file=sys.stderr)
        return error.code
    target = ROOT / "build" / "bench" / "image.json"
    target.write_bytes(found.encoded())
    print(target.read_text())
    if asked.page:
        asked.page.write_text(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
