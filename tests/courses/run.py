"""Run the commands of lessons on a virtual cluster: ``python -m tests.courses.run PAGE... [--write]``.

Without ``--write``, the program compares the exit status and the output of each command with the page.
"""

import argparse
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.courses.desk import CLASSROOM, ROOT, Desk, NoEnd, Shell, variables
from tests.courses.likeness import difference, lasting, shortened
from tests.courses.page import Command, File, Keep, WrongPage, steps, written
from tests.services.leftover import remove_leftover
from tests.services.program import toolkit
from tests.services.ready import RECIPE
from tests.services.registry import Registry
from toolkit.cluster import virtual
from toolkit.errors import Missing, ToolkitError

# The cluster's name is as long as the name on the pages, and differs between checkouts and pytest workers.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
CLUSTER = CLASSROOM[:5] + hashlib.sha256(f"{ROOT}{_WORKER}".encode()).hexdigest()[: len(CLASSROOM) - 5]
STATE = ROOT / "build" / "courses" / _WORKER
IMAGE = ROOT / "build" / "images" / f"{RECIPE}.sif"

DATA = ("mnist", "cifar10")

_SECONDS = 400.0
"""Time limit of one command in seconds."""

_REGISTRY = "$REGISTRY"
"""Variable that the pages use for the address of a registry."""


Tell = Callable[[float, Command], None]


@dataclass
class Run:
    """The result of a page: failed commands, commands with different output, their output, and their
    durations.
    """

    wrong: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    outputs: list[tuple[Command, list[str]]] = field(default_factory=list)
    kept: list[tuple[Keep, bytes]] = field(default_factory=list)
    seconds: list[tuple[float, Command]] = field(default_factory=list)


def run(
    text: str, name: str, desk: Desk, *, timeout: float = _SECONDS, tell: Tell = lambda took, command: None
) -> Run:
    """Run the commands of a page and compare their output; stop at the first unexpected exit status.

    ``tell`` is called with the seconds and the text of each finished command.
    """
    result = Run()
    with Shell(desk.folder, desk.environment()) as shell:
        for step in steps(text, name):
            if isinstance(step, File):
                path = desk.folder / step.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step.text)
            elif isinstance(step, Keep):
                made = desk.folder / step.made
                if not made.is_file():
                    result.wrong.append(f"{name}:{step.line}: {step.made} was not made")
                    return result
                result.kept.append((step, made.read_bytes()))
            else:
                began = time.monotonic()
                goes_on = _command(step, name, desk, shell, timeout, result)
                result.seconds.append((time.monotonic() - began, step))
                tell(*result.seconds[-1])
                if not goes_on:
                    return result
    return result


def _command(step: Command, name: str, desk: Desk, shell: Shell, timeout: float, result: Run) -> bool:
    try:
        status, lines = shell.run(desk.typed(step.text), timeout)
    except NoEnd as error:
        result.wrong.append(f"{name}:{step.line}: {error}")
        return False
    printed = lasting([desk.shown(line) for line in lines])
    if status != step.status:
        said = "\n".join(f"    {desk.shown(line)}" for line in lines)
        result.wrong.append(f"{name}:{step.line}: ended with {status}: $ {step.text}\n{said}")
        return False
    result.outputs.append((step, printed))
    if unlike := difference(step.shown, printed):
        said = "\n".join(f"    {line}" for line in unlike)
        result.unlike.append(f"{name}:{step.line}: printed otherwise: $ {step.text}\n{said}")
    return True


def write(page: Path, result: Run) -> None:
    """Write the new output into the page, and copy the kept files, such as plots, to the page's folder.

    Each file is replaced as a whole.
    Lines that the page omits stay omitted if the other lines are unchanged.
    """
    outputs = [(command, shortened(command.shown, printed) or printed) for command, printed in result.outputs]
    for keep, content in result.kept:
        target = page.parent / keep.kept
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content)
    _replace(page, written(page.read_text(), outputs).encode())


def _replace(target: Path, content: bytes) -> None:
    part = target.with_name(f".{target.name}.part")
    part.write_bytes(content)
    part.replace(target)


@contextlib.contextmanager
def classroom() -> Iterator[str]:
    """Start the lessons' cluster, and remove it after the ``with`` block unless TOOLKIT_KEEP_CLUSTER is
    set.
    """
    with variables(XDG_STATE_HOME=str(STATE)):
        remove_leftover(CLUSTER)
        try:
            virtual.up(CLUSTER, 2)
            # The pages show the output for data sets that exist already, so fetch them first.
            for name in DATA:
                toolkit("data", "get", name)
            yield CLUSTER
        finally:
            if not os.environ.get("TOOLKIT_KEEP_CLUSTER"):
                with contextlib.suppress(Missing):
                    virtual.down(CLUSTER)


@contextlib.contextmanager
def desk(text: str) -> Iterator[Desk]:
    """Yield a new reader's desk for a page, with a registry if the page needs one; remove everything
    afterwards.
    """
    _clear_work()
    folder = Path(tempfile.mkdtemp(prefix="lesson-")).resolve()
    try:
        with contextlib.ExitStack() as stack:
            variables = {"REGISTRY": stack.enter_context(_registry(folder))} if _REGISTRY in text else {}
            yield Desk(folder, CLUSTER, STATE, variables)
    finally:
        shutil.rmtree(folder)


def _clear_work() -> None:
    """Remove job output of other pages and earlier runs, because jobs append to logs."""
    with variables(XDG_STATE_HOME=str(STATE)):
        find = ("find", "/work/ada", "-maxdepth", "1", "-type", "f", "-delete")
        toolkit("cluster", "exec", "--name", CLUSTER, "--", *find)


@contextlib.contextmanager
def _registry(folder: Path) -> Iterator[str]:
    made = Registry(folder / "registry", tls=False)
    made.start()
    try:
        yield made.host
    finally:
        made.stop()


def main(words: list[str]) -> int:
    """Run pages one after the other; return 0 if all output matches, 1 if not, 2 if a file is not a
    lesson.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.courses.run", description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    parser.add_argument("--write", action="store_true", help="put what was printed into the pages")
    given = parser.parse_args(words)
    try:
        for page in given.pages:
            steps(page.read_text(), str(page))
        if not IMAGE.is_file():
            raise Missing(f"{IMAGE} is not there", fix="make image")
        with classroom():
            return max([_page(page, write_it=given.write) for page in given.pages])
    except KeyboardInterrupt:
        print("courses: interrupted; no page was changed since the last one told above", file=sys.stderr)
        return 130
    except (OSError, WrongPage, ToolkitError) as error:
        print(f"courses: {error}", file=sys.stderr)
        return 2


def _page(page: Path, *, write_it: bool) -> int:
    text = page.read_text()
    with desk(text) as place:
        result = run(text, str(page), place, tell=_tell)
    print(f"{page}: {len(result.seconds)} commands in {sum(took for took, _ in result.seconds):.0f} s")
    if write_it:
        write(page, result)
        result.unlike.clear()
    for trouble in (*result.unlike, *result.wrong):
        print(trouble)
    return 1 if result.wrong or result.unlike else 0


def _tell(took: float, command: Command) -> None:
    print(f"  {took:6.1f} s  {command.text.splitlines()[0]}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
