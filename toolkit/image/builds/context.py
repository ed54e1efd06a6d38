"""Collect the files of a Docker build context for one component, for the stack (the image without the
trainers), or for the finished image.
"""

from collections.abc import Mapping
from pathlib import Path

from toolkit.data import package, shipped_folder
from toolkit.image.builds.documents import documents
from toolkit.image.builds.emit import Making, dockerfile
from toolkit.image.locks.patches import patches_of
from toolkit.image.locks.steps import Step, requirement_lines, strippers
from toolkit.model.lock import LockedFile, encode_lock
from toolkit.run.docker.engine import Files


def compile_context(
    making: Making, step: Step, files: Mapping[str, Path], compiled_files: Mapping[str, Path]
) -> Files:
    """Return the files of the build context in which Docker compiles one component. The keys are paths in the
    context.

    ``files`` maps the SHA-256 of each file in the lock to the file's path. ``compiled_files`` maps the file
    name of each compiled component to the file's path.
    """
    lock = making.lock
    needed = {name: path for name, path in compiled_files.items() if name in making.compiled_files.values()}
    contents: dict[str, bytes | Path] = {
        "Dockerfile": dockerfile(making, ("base",), single_step=step).encode(),
        **parts(("packages.sh", "compile.sh", "python.sh", *step.parts)),
        **_context_files("toolchain", lock.build.debian, files),
        **_context_files("sources", (step.source, *step.extra), files),
        **_context_files("wheels", step.wheels, files),
        **{f"compiled/{name}": path for name, path in needed.items()},
    }
    contents |= {f"patches/{name}": text for name, text in patches_of(lock).items() if name in step.patches}
    if step.requirements:
        contents |= _context_files("tools", lock.build.wheels, files)
        contents[f"requirements/{step.component}.txt"] = requirement_lines(step.requirements)
    return contents


def stack_context(making: Making, files: Mapping[str, Path], compiled_files: Mapping[str, Path]) -> Files:
    """Return the files of the build context for the stack (the image without the trainers): the lock's files
    and the compiled components.
    """
    return {
        "Dockerfile": dockerfile(making, ("base", "stack")).encode(),
        **_stack_files(making, files),
        **{f"compiled/{name}": path for name, path in compiled_files.items()},
    }


def image_context(making: Making, stack: str) -> Files:
    """Return the files of the build context that adds toolkit's own files to the stack. ``stack`` is the name
    of the stack in the Docker engine.
    """
    return {"Dockerfile": dockerfile(making, ("image",), stack=stack).encode(), **own_files(making)}


def whole_context(making: Making, files: Mapping[str, Path]) -> Files:
    """Return the files that a build of the stack and of the finished image copies. The keys are paths in the
    build context. The result contains neither the Dockerfile nor the packages of the base image.
    """
    lock, steps = making.lock, making.steps
    contents: dict[str, bytes | Path] = {
        **_context_files("toolchain", lock.build.debian, files),
        **_context_files(
            "sources", tuple(file for step in steps for file in (step.source, *step.extra)), files
        ),
        **_stack_files(making, files),
        **own_files(making),
    }
    contents |= {f"patches/{name}": text for name, text in patches_of(lock).items()}
    for step in steps:
        if step.requirements:
            contents[f"requirements/{step.component}.txt"] = requirement_lines(step.requirements)
    return contents


def own_files(making: Making) -> dict[str, bytes | Path]:
    """Return the files that toolkit adds to an image: the trainers, the lock, the SBOM, the provenance and
    the script ``manifest.py``. The keys are paths in the build context.
    """
    return {
        "papers/lock.json": encode_lock(making.lock),
        "papers/manifest.py": (shipped_folder("containers") / "manifest.py").read_bytes(),
        **{f"papers/{n}": text for n, text in documents(making.lock).items()},
        "lib/toolkit/__init__.py": (package() / "__init__.py").read_bytes(),
        **{f"lib/toolkit/trainers/{name}": content for name, content in trainers().items()},
    }


def trainers() -> dict[str, bytes]:
    """Return the files of toolkit's trainers, by their path below ``trainers``."""
    folder = package() / "trainers"
    names = (file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file())
    return {name.as_posix(): (folder / name).read_bytes() for name in names if _belongs(name)}


def context_name(file: LockedFile) -> str:
    """Return a file's name in the build context. The name has ``_`` instead of ``%``, because package
    managers would decode ``%3a`` in a name as ``:``.
    """
    return file.file.replace("%", "_")


def _stack_files(making: Making, files: Mapping[str, Path]) -> dict[str, bytes | Path]:
    lock = making.lock
    return {
        **parts(),
        **_context_files("packages", lock.run.debian, files),
        **_context_files("strip", strippers(lock), files),
        **_context_files("tools", lock.build.wheels, files),
        **_context_files("wheels", lock.run.wheels, files),
        "wheels/.keep": b"",  # COPY fails without the folder of wheels, and some images have no wheels
        "requirements/image.txt": requirement_lines(lock.run.wheels),
    }


def parts(names: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Return the build steps' shell scripts that have one of the file names in ``names``. If ``names`` is
    empty, return all shell and Python scripts. The keys are paths in the build context.
    """
    folder = shipped_folder("containers")
    scripts = [file for file in sorted((folder / "parts").glob("*.sh")) if not names or file.name in names]
    scripts += [] if names else [folder / "stack.py", folder / "bytecode.py", folder / "toolkit_modules.py"]
    return {f"parts/{file.name}": file.read_bytes() for file in scripts}


def _context_files(
    folder: str, lock_files: tuple[LockedFile, ...], files: Mapping[str, Path]
) -> dict[str, bytes | Path]:
    return {f"{folder}/{context_name(file)}": files[file.sha256] for file in lock_files}


def _belongs(path: Path) -> bool:
    return "__pycache__" not in path.parts and not path.name.startswith(".")
