"""One damaged image or facts file: made from its number alone, read, and judged by what comes of it."""

import random
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.fuzz import damage, hostile, locks, seeds
from tests.unit.image.archives import PACK, oci_layout, written
from tests.unit.image.sifs import DATA, sandbox
from toolkit.engine.predict import examine, predict
from toolkit.errors import ToolkitError
from toolkit.image.inspect import inspect
from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Request
from toolkit.probe.probe import load

SECONDS = 20
"""Longest that a case may keep the processor busy; a bomb is given up after a few."""
MEMORY = 300 << 20
"""Bytes by which the peak of a case may lie above what the process had before."""


class Late(BaseException):
    """A case took too long."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case; ``fault`` says what is wrong with that, and is empty where nothing is."""

    number: int
    kind: str
    came: str
    seconds: float
    grown: int
    fault: str = ""


def make(number: int, seed: int, folder: Path) -> tuple[str, Path]:
    """Write the input of a case into a folder; return its kind and its path."""
    chance = random.Random(f"{seed}:{number}")
    kinds, weights = zip(*((k, w) for k, (w, _) in _KINDS.items()), strict=True)
    kind = chance.choices(kinds, weights)[0]
    made = _KINDS[kind][1](chance, folder)
    if isinstance(made, bytes):
        file = folder / ("facts.json" if kind.startswith("facts") else "image")
        file.write_bytes(made)
        return kind, file
    return kind, made


def run(number: int, seed: int, folder: Path) -> Outcome:
    """Make a case and read it, within limits of time and memory, and see that nothing else has changed."""
    kind, path = make(number, seed, folder)
    before, begun, rss = _listing(folder), time.process_time(), _peak(reset=True)
    try:
        with _within(SECONDS):
            came = _read(kind, path, number)
        fault = ""
    except ToolkitError as error:
        came, fault = type(error).__name__, _unfit(error)
    except Late:
        came, fault = "late", f"it took more than {SECONDS} s"
    except BaseException as error:  # noqa: BLE001 - whatever comes is what is looked for
        came, fault = type(error).__name__, traceback.format_exc()
    seconds, grown = time.process_time() - begun, _peak() - rss
    if not fault and _listing(folder) != before:
        fault = "files outside the cache have changed"
    if not fault and grown > MEMORY:
        fault = f"it took {grown >> 20} MiB of memory"
    return Outcome(number, kind, came, seconds, grown, fault)


def _read(kind: str, path: Path, number: int) -> str:
    if kind in locks.KINDS:
        return locks.read(path.read_bytes())
    return _facts_file(path, number) if kind.startswith("facts") else _image(path, number)


def _image(path: Path, number: int) -> str:
    facts = inspect(path)
    text = msgspec.json.encode(facts)
    if hostile.SECRET.encode() in text:
        raise AssertionError("what stands outside the image has come into its facts")
    again = msgspec.json.decode(text, type=ImageFacts)
    predict(seeds.host(), again, Request(nodes=1 + number % 2, ranks_per_node=1 + number % 3))
    return "facts"


def _facts_file(path: Path, number: int) -> str:
    host = load(path)
    msgspec.json.encode(host)
    predict(host, seeds.image(), Request(nodes=1 + number % 2, ranks_per_node=1 + number % 3))
    examine(host)
    return "facts"


def _unfit(error: ToolkitError) -> str:
    """Say what is wrong with a message that a person sees."""
    if "\n" in error.message or "\n" in error.fix:
        return f"its message has several lines: {error.message!r}"
    if len(error.message) > 1000 or not error.message.isprintable():
        return f"its message cannot be shown: {error.message[:2000]!r}"
    return "" if hostile.SECRET not in error.message else "its message tells what stands outside the image"


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise Late

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _peak(*, reset: bool = False) -> int:
    """Return the largest memory that the process has had, since it was last ``reset`` to what it has now."""
    if reset:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    status = Path("/proc/self/status").read_text()
    return int(next(row.split()[1] for row in status.splitlines() if row.startswith("VmHWM:"))) << 10


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return what lies around the input, the cache left out."""
    around = folder.parent
    found = {}
    for path in around.rglob("*"):
        if "cache" not in path.relative_to(around).parts[:1]:
            status = path.lstat()
            found[str(path)] = (status.st_size, status.st_mtime_ns if path.is_file() else 0)
    return found


def _damaged(chance: random.Random, _: Path) -> bytes:
    return damage.bytewise(chance.choice(seeds.flat()), chance, chance.choice(seeds.flat()))


def _layers(chance: random.Random, _: Path) -> bytes:
    """An archive whose digests are right and whose layers are not."""
    made = [damage.tar_headers(layer, chance) for layer in seeds.layers()]
    if chance.random() < 0.5:
        made[0] = damage.bytewise(made[0], chance, made[1])
    return seeds.archive_of(made, chance)


def _about(chance: random.Random, _: Path) -> bytes:
    """An archive whose configuration or list of layers is not what it should be."""
    about = seeds.configuration()
    if chance.random() < 0.5:
        return seeds.archive_with(damage.jsonwise(about, chance))
    listed = b'[{"Config": "c.json", "RepoTags": ["a:1"], "Layers": ["l/layer.tar"]}]'
    return seeds.archive_with(about, damage.jsonwise(listed, chance))


def _layout(chance: random.Random, folder: Path) -> Path:
    files = oci_layout(list(seeds.layers()), pack=chance.choice(list(PACK)), **seeds.PROCESS)
    name = chance.choice([*files, "index.json", "index.json"])
    wise = damage.jsonwise if name == "index.json" and chance.random() < 0.7 else damage.bytewise
    files[name] = wise(files[name], chance)
    if chance.random() < 0.1:
        del files[chance.choice(list(files))]
    return written(folder / "layout", files)


def _sandbox(chance: random.Random, folder: Path) -> Path:
    root = folder / "sandbox"
    for name, content in hostile.files(chance).items():
        if ".." in name or name.startswith("/"):
            continue  # a folder cannot hold such a name
        try:
            sandbox(root, {name: content})
        except (OSError, ValueError):
            continue  # nor a file below a file, nor a name that is too long
    root.mkdir(exist_ok=True)
    return root


def _facts_bytes(chance: random.Random, _: Path) -> bytes:
    return damage.bytewise(chance.choice(seeds.bundles()), chance, (DATA / "tiny.zstd").read_bytes())


def _facts_values(chance: random.Random, _: Path) -> bytes:
    return damage.jsonwise(chance.choice(seeds.bundles()[-2:]), chance)


_KINDS: dict[str, tuple[float, Callable[[random.Random, Path], bytes | Path]]] = {
    "image, bytes": (30, _damaged),
    "image, layers": (12, _layers),
    "image, configuration": (8, _about),
    "image, layout": (6, _layout),
    "image, sandbox": (6, _sandbox),
    "image, hostile": (12, lambda chance, _: hostile.packed_files(chance)),
    "image, bomb": (2, lambda chance, _: hostile.bomb(chance)),
    "facts, bytes": (12, _facts_bytes),
    "facts, values": (12, _facts_values),
    "lock, fields": (8, lambda chance, _: locks.made("lock, fields", chance)),
    "lock, values": (3, lambda chance, _: locks.made("lock, values", chance)),
    "lock, bytes": (2, lambda chance, _: locks.made("lock, bytes", chance)),
}
