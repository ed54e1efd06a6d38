"""Compile components of images from source code, and cache each result by a hash of its inputs."""

import contextlib
import fcntl
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from toolkit.data import cache_dir
from toolkit.errors import BadInput, CheckFailed
from toolkit.files import hash_file
from toolkit.image.builds.context import compile_context
from toolkit.image.builds.emit import Making
from toolkit.image.locks.steps import Step, key_of, output_of
from toolkit.model.lock import CompiledComponent
from toolkit.model.progress import Tell
from toolkit.run.docker.copy_out import ChunkReader
from toolkit.run.docker.engine import BuildOptions, ParallelBuilds, build_image, forget_image, stream_folder

if TYPE_CHECKING:
    from docker import DockerClient

_FOLDER = "/build/compiled"
_SUM = "sha256"
_PATIENCE = 0.5
"""The pause, in seconds, between two checks whether another build still compiles the same component."""
MEMORY_OF_A_COMPILER = 3 << 29
"""The memory in bytes (1.5 GiB) that one C++ compiler needs to compile Horovod with TensorFlow's headers."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled component: the path of its file, the SHA-256 of the file, and its key in the cache."""

    path: Path
    sha256: str
    key: str


def ensure_compiled(
    client: "DockerClient",
    making: Making,
    files: Mapping[str, Path],
    tell: Tell,
    options: BuildOptions,
    jobs: int,
) -> dict[CompiledComponent, Made]:
    """Return all compiled components of an image. Compile the components that the cache lacks,
    several of them in parallel.

    ``files`` maps the SHA-256 of each file in the lock to the file's path. ``jobs`` is the number of parallel
    compilers for each component. If ``options.fresh`` is true, toolkit ignores cached results.

    Raises:
        CheckFailed: if the compilation of a component fails.
        Missing: if the Docker engine does not respond.
    """
    results: dict[CompiledComponent, Made] = {}
    waiting = list(making.steps)
    while waiting:
        turn = [step for step in waiting if all(before in results for before in step.after)]
        waiting = [step for step in waiting if step not in turn]
        keys = {s.component: key_of(s, making.lock, {c: results[c].key for c in s.after}) for s in turn}
        cached = {} if options.fresh else {s.component: _cached_result(s, keys[s.component]) for s in turn}
        results |= {component: result for component, result in cached.items() if result}
        missing = [step for step in turn if step.component not in results]
        # Each parallel step may start ``jobs`` compilers, so all steps together may start more than ``jobs``.
        # They rarely do. For example, mpi4py needs only one compiler and finishes soon; from then on, only
        # the step of Horovod runs compilers.
        work = _Work(client, making, files, tell, options, jobs, ParallelBuilds(client))
        results |= _run_parallel(
            {s.component: partial(work.compile, s, keys[s.component], results) for s in missing}, work
        )
    return results


def _run_parallel(
    tasks: Mapping[CompiledComponent, Callable[[], Made]], work: "_Work"
) -> dict[CompiledComponent, Made]:
    """Run several compilations in parallel, and return their results by component. If one compilation fails
    or the user interrupts toolkit, toolkit stops all compilations.
    """
    if not tasks:
        return {}
    pool = ThreadPoolExecutor(len(tasks))
    try:
        futures = {component: pool.submit(task) for component, task in tasks.items()}
        done, _ = wait(futures.values(), return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        return {component: future.result() for component, future in futures.items()}
    except BaseException:
        work.builds.end()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Work:
    """The arguments that all compilations of an image share."""

    client: "DockerClient"
    making: Making
    files: Mapping[str, Path]
    tell: Tell
    options: BuildOptions
    jobs: int
    builds: ParallelBuilds

    def compile(self, step: Step, key: str, results: Mapping[CompiledComponent, Made]) -> Made:
        """Compile a component and return the result. If another process compiles the same component, first
        wait for that process. Then return that process's result unless ``options.fresh`` is true.
        """
        with self._turn(key):
            cached = None if self.options.fresh else _cached_result(step, key)
            return cached or self._compiled(step, key, results)

    @contextlib.contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        folder = _folder(key).parent
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f".{key}.lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self.builds.go_on()
                    time.sleep(_PATIENCE)
            yield

    def _compiled(self, step: Step, key: str, results: Mapping[CompiledComponent, Made]) -> Made:
        self.tell.step(f"Compiling {step.component} {step.source.version}")
        before = {component: results[component].path for component in step.after}
        making = msgspec.structs.replace(
            self.making, compiled_files={c: path.name for c, path in before.items()}
        )
        context = compile_context(making, step, self.files, {path.name: path for path in before.values()})
        options = replace(self.options, arguments={**self.options.arguments, "JOBS": str(self.jobs)})
        what = f"{self.making.lock.recipe}: {step.component}"
        image = build_image(self.client, context, what, self.tell, options, self.builds)
        try:
            return _keep(step, key, stream_folder(self.client, image, _FOLDER))
        finally:
            forget_image(self.client, image)


def _folder(key: str) -> Path:
    return cache_dir() / "compiled" / key


def _cached_result(step: Step, key: str) -> Made | None:
    """Return the cached result for ``key``, or None if the cache lacks the result or its file is damaged."""
    folder = _folder(key)
    try:
        noted = (folder / _SUM).read_text("utf-8").strip()
        path = next(path for path in folder.iterdir() if fnmatch(path.name, output_of(step)))
        digest = hash_file(path)
    except (OSError, BadInput, StopIteration):
        return None
    return Made(path=path, sha256=digest, key=key) if digest == noted else None


def _keep(step: Step, key: str, stream: Iterator[bytes]) -> Made:
    """Copy the result of a step from the tar ``stream`` into the cache. The function fills a temporary
    folder and then renames this folder, so other processes never read an incomplete result.
    """
    folder = _folder(key)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{key[:12]}.", dir=folder.parent))
    try:
        path = _extract_output(step, stream, beside)
        digest = hash_file(path)
        (beside / _SUM).write_text(f"{digest}\n", "utf-8")
        beside.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        beside.replace(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return Made(path=folder / path.name, sha256=digest, key=key)


def _extract_output(step: Step, stream: Iterator[bytes], folder: Path) -> Path:
    with tarfile.open(fileobj=ChunkReader(stream), mode="r|") as tar:
        for entry in tar:
            name = PurePosixPath(entry.name).name
            if entry.isfile() and fnmatch(name, output_of(step)) and (source := tar.extractfile(entry)):
                with (folder / name).open("wb") as writing:
                    shutil.copyfileobj(source, writing, 1 << 20)
                    os.fsync(writing.fileno())
                return folder / name
    raise CheckFailed(f"the compilation of {step.component} did not produce {output_of(step)}")
