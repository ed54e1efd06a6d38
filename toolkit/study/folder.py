"""Read and write the folder of a study: ``study.json``, the folder ``points`` with a file for each run, and
Horovod's timelines.

toolkit writes each file atomically.
"""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from toolkit.decoding import DECODE_ERRORS
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import is_there, read_given
from toolkit.model.study import Point, Study
from toolkit.run.local import LocalRunner
from toolkit.study.grammar import faults
from toolkit.study.study_points import file_name, points

STUDY = "study.json"
POINTS = "points"
TIMELINES = "timelines"
_SCHEMA = "toolkit.study/1"
_LARGEST = 64 << 20
"""Maximum size of a study file or a point file in bytes."""


def is_study(folder: Path) -> bool:
    return (folder / STUDY).is_file()


def load(folder: Path) -> Study:
    """Read the definition of a study from ``study.json``.

    Raises:
        BadInput: if the file is missing or invalid.
    """
    file = folder / STUDY
    content = read_given(file, limit=_LARGEST, fix="give a folder that `toolkit scale` wrote")
    try:
        study = msgspec.json.decode(content, type=Study)
    except DECODE_ERRORS as error:
        raise BadInput(f"{file}: not a study: {error}") from error
    if study.schema != _SCHEMA:
        raise BadInput(f"{file}: unknown schema {study.schema}; this release of toolkit reads only {_SCHEMA}")
    for fault in faults(study):
        raise BadInput(f"{file}: {fault}")
    return study


def save(folder: Path, study: Study) -> None:
    """Write the definition of a study to ``study.json``."""
    _write(folder / STUDY, study)


def load_points(folder: Path, study: Study) -> list[Point]:
    """Return all points of a study. Each point is one run of the study. The state of a run without a file is
    ``planned``.

    Raises:
        BadInput: if the file of a point is invalid.
    """
    return [_point(folder / POINTS / f"{file_name(point)}.json") or point for point in points(study)]


def save_point(folder: Path, point: Point) -> None:
    """Write the file of one point (one run of a study)."""
    _write(folder / POINTS / f"{file_name(point)}.json", point)


def save_timeline(folder: Path, point: Point, content: bytes) -> Path:
    """Write Horovod's timeline of one run to a file, and return the file's path."""
    file = folder / TIMELINES / f"{file_name(point).removesuffix('-timeline')}.json"
    LocalRunner().write(str(file), content, 0o644)
    return file


@contextlib.contextmanager
def hold_study(folder: Path) -> Iterator[None]:
    """Lock the folder of a study, so that only one ``toolkit scale`` at a time runs the study.

    Raises:
        CheckFailed: if another ``toolkit scale`` already runs the study.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / ".lock"
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckFailed(f"{folder}: another `toolkit scale` is running this study") from None
        except OSError:  # some network file systems do not support locks
            pass
        try:
            yield
        except BaseException:
            if [*folder.iterdir()] == [lock]:  # the folder contains only the lock
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _point(file: Path) -> Point | None:
    if not is_there(file):
        return None
    content = read_given(file, limit=_LARGEST)
    try:
        return msgspec.json.decode(content, type=Point)
    except DECODE_ERRORS as error:
        raise BadInput(
            f"{file}: not a measurement of a study: {error}",
            fix="move the file to another folder, so that toolkit repeats this measurement",
        ) from error


def _write(file: Path, value: Study | Point) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    LocalRunner().write(str(file), text + b"\n", 0o644)
