"""Train MNIST with Horovod in all launch modes on the virtual clusters; record predictions and outcomes.

    python -m tests.matrix.train [--flavour F]… [--image RECIPE]… [--mode MODE]… [--again]

Each training is a user's command: `toolkit launch mnist` with the preflight. The command has no `--mode` if
the engine chooses the mode anyway, and has `--force` if the engine predicts a failure. The program skips
recorded trainings with the same image. The program builds missing SIF files in `build/images`, which takes
minutes.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from subprocess import TimeoutExpired

import msgspec

from tests.matrix.central import central
from tests.matrix.outcome import classify, telling
from tests.matrix.place import Place
from tests.matrix.trainings import Trained, Wanted, load, save, wanted
from tests.services.program import ROOT, toolkit
from toolkit.cluster.flavour import flavours
from toolkit.engine.predict import predict
from toolkit.image.inspect import inspect
from toolkit.launch.tracking.records import OUTPUT, folder
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import MODES, Prediction
from toolkit.report.progress import Progress

LIMIT = "10"
"""Time limit of a job in minutes; a job that exceeds the limit counts as a hang."""
EPOCHS = "2"
"""Epochs of all ranks together: one epoch for each of two ranks."""

_ALONE = re.compile(r"a world of 1 where \d+ tasks were started|every rank is alone")


def sif(recipe: str) -> Path:
    return ROOT / "build" / "images" / f"{recipe}.sif"


def ensure(recipe: str) -> Path:
    """Return the SIF of a recipe; build it if it is missing. An existing SIF may be out of date."""
    target = sif(recipe)
    if not target.is_file():
        toolkit("image", "build", recipe, timeout=3600)
        toolkit("image", "sif", recipe, "-o", str(target), timeout=900)
    return target


def train(place: Place, one: Wanted, host: HostFacts, image: ImageFacts) -> Trained:
    verdict = predict(host, image, one.request)
    prediction, itself = verdict.of(one.mode), verdict.chosen == one.mode
    words = ["launch", "mnist", "--cluster", place.cluster.name, "--image", str(sif(one.image))]
    words += ["--nodes", str(one.nodes), "--ranks-per-node", str(one.ranks_per_node), "--time", LIMIT]
    words += [] if itself else ["--mode", one.mode]
    words += ["--force"] if prediction.outcome != "ok" else []
    before = {job["key"] for job in _jobs()}
    done = toolkit(*words, "--", "--epochs", EPOCHS, ok=False, timeout=1200)
    new = [job for job in _jobs() if job["key"] not in before]
    if len(new) != 1:
        raise RuntimeError(f"{one.name}: nothing was launched\n{done.stdout}\n{done.stderr}")
    (record,) = new
    if itself and record["mode"] != one.mode:
        raise RuntimeError(
            f"{one.name}: launch took {record['mode']} by itself, and predict {verdict.chosen}"
        )
    return _became(one, prediction, verdict.chosen, record, itself=itself)


def _became(
    one: Wanted, prediction: Prediction, chosen: str | None, record: dict, *, itself: bool
) -> Trained:
    text = (folder(record["key"]) / OUTPUT).read_text(errors="replace")
    status, ranks = record["exit_code"], one.nodes * one.ranks_per_node
    told = {
        "wanted": one,
        "predicted": prediction.outcome,
        "chosen": chosen,
        "by_itself": itself,
        "exit": status,
    }
    if record["state"] != "completed":
        late = record["state"] == "timeout"
        outcome = "singletons" if _ALONE.search(text) else classify(text, status, late, ranks).outcome
        return msgspec.convert({**told, "outcome": outcome, "line": telling(text)}, Trained, strict=False)
    made = ROOT / "build" / "matrix" / "result"
    toolkit("report", record["key"], "--output", str(made))
    result = json.loads((made / "result.json").read_text())
    sizes = {ranks: "ok", 1: "singletons"}
    found = {name: result[name] for name in ("world_size", "nodes", "images_per_second")}
    return msgspec.convert(
        {
            **told,
            **found,
            "accuracy": result["test_accuracy"],
            "outcome": sizes.get(result["world_size"], "wrong-size"),
        },
        Trained,
    )


def _jobs() -> list[dict]:
    return json.loads(toolkit("jobs", "list", "--json").stdout)["jobs"]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.train", description=__doc__)
    parser.add_argument("--flavour", action="append", choices=list(flavours()))
    parser.add_argument("--image", action="append", choices=sorted({one.image for one in wanted()}))
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--again", action="store_true", help="run recorded trainings once more")
    arguments = parser.parse_args(words)
    tell = Progress(verbose=False, quiet=False)
    toolkit("data", "get", "mnist")
    asked = [one for one in wanted() if _is_asked(arguments, one)]
    images = {name: _facts(ensure(name)) for name in dict.fromkeys(one.image for one in asked)}
    todo = asked if arguments.again else [one for one in asked if not _is_recorded(one, images[one.image])]
    failed = 0
    for flavour in dict.fromkeys(one.flavour for one in todo):
        place = Place(flavour, tell)
        for name in dict.fromkeys(one.central for one in todo if one.flavour == flavour):
            with central(place, name):
                host = place.facts()
                for one in todo:
                    if (one.flavour, one.central) == (flavour, name):
                        failed += not _recorded(place, one, host, images[one.image])
    return 1 if failed else 0


def _recorded(place: Place, one: Wanted, host: HostFacts, image: ImageFacts) -> bool:
    try:
        trained = train(place, one, host, image)
    except (RuntimeError, AssertionError, TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return False
    record = load()
    record.put(host, image, trained)
    save(record)
    place.tell.step(f"{one.name}: {trained.outcome}, predicted {trained.predicted}")
    return True


def _facts(file: Path) -> ImageFacts:
    return msgspec.structs.replace(inspect(file), path=file.name)


def _is_asked(arguments: argparse.Namespace, one: Wanted) -> bool:
    asked = ((arguments.flavour, one.flavour), (arguments.image, one.image), (arguments.mode, one.mode))
    return all(not some or value in some for some, value in asked)


def _is_recorded(one: Wanted, image: ImageFacts) -> bool:
    record = load()
    known = record.images.get(one.image)
    same = known is not None and known.digest == image.digest
    return same and any(done.wanted == one for done in record.trainings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
