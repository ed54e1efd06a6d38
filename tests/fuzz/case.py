"""Make and run one case: a damaged input, such as an image, that follows from the case's number."""

import random
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.fuzz import bundles, damage, hostile, locks, seeds, terminal
from tests.fuzz.kind import Kind
from tests.unit.image.archives import PACK, oci_layout, written
from tests.unit.image.sifs import DATA, sandbox
from toolkit.engine.predict import judge_host, predict
from toolkit.errors import ToolkitError
from toolkit.image.inspect import inspect
from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Request
from toolkit.probe.probe import load

SECONDS = 20
"""Limit of CPU seconds for a case; toolkit refuses a decompression bomb after a few seconds."""
MEMORY = 300 << 20
"""Bytes by which a case may exceed the process's earlier peak memory."""


class Late(BaseException):
    """A case exceeded its time limit."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a case; ``fault`` describes a fault of toolkit, and is empty for a good result."""

    number: int
    kind: str
    came: str
    seconds: float
    grown: int
    fault: str = ""


def make(number: int, seed: int, folder: Path) -> tuple[Kind, Path]:
    chance = random.Random(f"{seed}:{number}")
    (kind,) = chance.choices(KINDS, [kind.weight for kind in KINDS])
    made = kind.make(chance, folder)
    if isinstance(made, bytes):
        file = folder / kind.file
        file.write_bytes(made)
        return kind, file
    return kind, made


def run(number: int, seed: int, folder: Path) -> Outcome:
    kind, path = make(number, seed, folder)
    before, begun, rss = _listing(folder), time.process_time(), _peak(reset=True)
    try:
        with _within(SECONDS):
            came = kind.read(path, number)
        fault = ""
    except ToolkitError as error:
        came, fault = type(error).__name__, _unfit(error)
    except Late:
        came, fault = "late", f"it took more than {SECONDS} s"
    except BaseException as error:  # noqa: BLE001 - the fuzzer looks for any exception
        came, fault = type(error).__name__, traceback.format_exc()
    seconds, grown = time.process_time() - begun, _peak() - rss
    if not fault and _listing(folder) != before:
        fault = "files outside the cache have changed"
    if not fault and grown > MEMORY:
        fault = f"it took {grown >> 20} MiB of memory"
    return Outcome(number, kind.name, came, seconds, grown, fault)


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
    judge_host(host)
    return "facts"


def _unfit(error: ToolkitError) -> str:
    """Return the fault of an error message, such as several lines; empty for a good message."""
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
    """Return the process's peak memory in bytes; ``reset`` starts a new peak at the current memory."""
    if reset:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    status = Path("/proc/self/status").read_text()
    return int(next(row.split()[1] for row in status.splitlines() if row.startswith("VmHWM:"))) << 10


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
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
    """Return an archive with correct digests and damaged layers."""
    made = [damage.tar_headers(layer, chance) for layer in seeds.layers()]
    if chance.random() < 0.5:
        made[0] = damage.bytewise(made[0], chance, made[1])
    return seeds.archive_of(made, chance)


def _about(chance: random.Random, _: Path) -> bytes:
    """Return an archive with a damaged configuration or a damaged list of layers."""
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
            continue  # a folder cannot contain a file with such a name
        try:
            sandbox(root, {name: content})
        except (OSError, ValueError):
            continue  # a folder cannot contain a file below a file, or a name that is too long
    root.mkdir(exist_ok=True)
    return root


def _facts_bytes(chance: random.Random, _: Path) -> bytes:
    return damage.bytewise(chance.choice(seeds.bundles()), chance, (DATA / "tiny.zstd").read_bytes())


def _facts_values(chance: random.Random, _: Path) -> bytes:
    return damage.jsonwise(chance.choice(seeds.bundles()[-2:]), chance)


KINDS: tuple[Kind, ...] = (
    Kind("image, bytes", 30, _damaged, _image),
    Kind("image, layers", 12, _layers, _image),
    Kind("image, configuration", 8, _about, _image),
    Kind("image, layout", 6, _layout, _image),
    Kind("image, sandbox", 6, _sandbox, _image),
    Kind("image, hostile", 12, lambda chance, _: hostile.packed_files(chance), _image),
    Kind("image, bomb", 2, lambda chance, _: hostile.bomb(chance), _image),
    Kind("image, lying block", 6, lambda chance, _: hostile.lying_block(chance), _image),
    Kind("facts, bytes", 12, _facts_bytes, _facts_file, "facts.json"),
    Kind("facts, values", 12, _facts_values, _facts_file, "facts.json"),
    *bundles.KINDS,
    *locks.KINDS,
    *terminal.KINDS,
)
"""All kinds of cases; another module can add its own tuple ``KINDS`` here."""
