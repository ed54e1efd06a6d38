"""Build each pair of Horovod and a framework, and compare the weights of two ranks and of one process.

    python -m tests.horovod.run [--again] [PAIR…]

The program skips recorded pairs unless you use ``--again``. Locks stay in build/horovod, and compiled files
in toolkit's cache. The program removes each image after its check, and writes docs/horovod.md after each
pair.
"""

import argparse
import datetime as dt
import io
import json
import sys
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.horovod import table
from tests.horovod.pairs import HERE, Learned, Pair, Tried, load, pairs, save
from toolkit.errors import CheckFailed, ToolkitError
from toolkit.image.builds.build import build
from toolkit.image.locks.lock import load_lock
from toolkit.image.locks.locking import lock_of
from toolkit.image.locks.recipe import NamedRecipe, recipe_sha256
from toolkit.model.lock import Lock
from toolkit.model.progress import Tell
from toolkit.report.progress import Progress
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import connect, find_image, named_like, untag_image

if TYPE_CHECKING:
    from docker import DockerClient

_LOCKS = Path(__file__).parents[2] / "build" / "horovod"
_PROGRAM = "/learner.py"
_SECONDS = 300
_MEMORY = 4 << 30
_MARK = "LEARNED "
_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
_LOOPBACK = {"HOROVOD_GLOO_IFACE": "lo"}
"""Setting of Horovod for the check's container, which has only the loopback network."""
_NAMED = ("sh", "-c", 'echo 127.0.0.1 "$(hostname)" >> /etc/hosts; exec "$@"', "sh")
"""Start of each command. It adds the container's name to /etc/hosts, because Gloo must resolve this name."""

_ONE = ("python", _PROGRAM)
_STARTS = {
    "mpirun": ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *_ONE),
    "gloo": ("horovodrun", "--gloo", "-np", "2", "-H", "localhost:2", *_ONE),
}


def lock_for(client: "DockerClient", named: NamedRecipe, tell: Tell) -> Lock:
    file = _LOCKS / f"{named.name}.lock.json"
    if file.is_file():
        kept = msgspec.json.decode(file.read_bytes(), type=Lock)
        if kept.recipe_sha256 == recipe_sha256(named.recipe):
            return kept
    lock = lock_of(client, named, tell)
    _LOCKS.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(lock))
    return lock


def attempt(client: "DockerClient", pair: Pair, tell: Tell) -> Tried:
    named, date = pair.recipe(), dt.datetime.now(dt.UTC).date().isoformat()
    tried = Tried(name=pair.name, date=date, versions={})
    began = time.monotonic()
    try:
        lock = (load_lock(pair.shipped) if pair.shipped else None) or lock_for(client, named, tell)
        patches = tuple(name for step in lock.steps for name in step.patches)
        tried = msgspec.structs.replace(tried, versions=lock.solution.versions, patches=patches)
        build(client, named, lock, tell)
        seconds = round(time.monotonic() - began)
        tried = msgspec.structs.replace(tried, built=True, seconds=seconds)
        one = learned(client, named.tag, _ONE)
        for way, words in _STARTS.items():
            compared = _compared(way, one, learned(client, named.tag, words))
            tried = msgspec.structs.replace(tried, learned=(*tried.learned, compared))
    except ToolkitError as error:
        detail = [line for line in getattr(error, "detail", ()) if line.strip()]
        return msgspec.structs.replace(tried, failure="\n".join((str(error), *detail)))
    return tried


def learned(client: "DockerClient", image: str, words: tuple[str, ...]) -> list[list[float]]:
    box = Box(image, env=_ENVIRONMENT | _LOOPBACK, memory=_MEMORY, timeout=_SECONDS, root_archive=_program())
    ran = run_once(client, box, (*_NAMED, *words))
    said = next((line.partition(_MARK)[2] for line in ran.lines if _MARK in line), "")
    if not ran.ok or not said:
        how = "took too long" if ran.timed_out else f"exited with status {ran.status}"
        raise CheckFailed(f"{words[0]} {how}", detail=ran.lines[-20:])
    result = json.loads(said)
    weights: list[list[float]] = result["weights"]
    if result["size"] != len(weights):
        raise CheckFailed(f"{words[0]}: {result['size']} ranks sent {len(weights)} sets of weights")
    return weights


def _compared(way: str, one: list[list[float]], ranks: list[list[float]]) -> Learned:
    return Learned(
        way=way,
        ranks=len(ranks),
        between=max(_apart(ranks[0], other) for other in ranks),
        from_one=max(_apart(one[0], other) for other in ranks),
    )


def _apart(left: list[float], right: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(left, right, strict=True))


def _program() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(HERE / "learner.py", _PROGRAM.lstrip("/"))
    return buffer.getvalue()


def _forget(client: "DockerClient", named: NamedRecipe) -> None:
    if find_image(client, named.tag) is not None:
        untag_image(client, named.tag)
    for name in named_like(client, f"toolkit-stack:{named.name}-"):
        untag_image(client, name)


def main(words: list[str]) -> int:
    """Run the pairs that are not recorded, and write the record and the page after each pair."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("pair", nargs="*")
    asked.add_argument("--again", action="store_true")
    asked.add_argument("--keep", action="store_true")
    options = asked.parse_args(words)
    record, tell, client = load(), Progress(), connect()
    wanted = [pair for pair in pairs() if not options.pair or pair.name in options.pair]
    for pair in wanted:
        if pair.name in record and not options.again:
            continue
        record[pair.name] = tried = attempt(client, pair, tell)
        save(record)
        table.write()
        sys.stdout.write(f"{pair.name}: {'equal' if tried.equal else tried.failure or 'different'}\n")
        sys.stdout.flush()
        if not options.keep and not pair.shipped:
            _forget(client, pair.recipe())
    client.close()
    return 0 if all(pair.name in record and record[pair.name].equal for pair in wanted) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
