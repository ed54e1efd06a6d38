"""Find the programs and Python extensions in an image that load an MPI, and the path of this MPI."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from toolkit.errors import CheckFailed
from toolkit.image.files import tree as files
from toolkit.image.files.bounded import BoundedTree
from toolkit.image.loader.loader import Loader
from toolkit.image.loader.search import SearchFolders, skip_forbidden_folders
from toolkit.image.software.command import StartedProgram, needs_mpi_module, resolve_command, sites_of
from toolkit.image.software.mpi4py import find_extension, variants

MPI_SONAME = re.compile(
    r"lib(mpi|mpich|mpi_abi|mpi_mt|mpi_ibm|mpi_cray|mpi_gnu_\d+|mpi_intel|mpi_nvidia)"
    r"(-[0-9a-f]{8})?\.so(\.\d+)*\Z"
)
"""A pattern for the file names of MPI libraries, except an MPI's extra libraries for C++ and Fortran.

auditwheel adds a hash to the file names of libraries that it copies into a wheel
(pypa/auditwheel:src/auditwheel/repair.py).
"""
_MPI4PY = "mpi4py/MPI.*so"
_EXTENSIONS = (
    "horovod/tensorflow/mpi_lib*.so",
    "horovod/torch/mpi_lib*.so",
    "horovod/mxnet/mpi_lib*.so",
)
_OF_R = (
    "/usr/lib/R/site-library",
    "/usr/local/lib/R/site-library",
    "/usr/lib64/R/library",
    "/usr/local/lib/R/library",
)
"""The folders of R packages in Debian, in rocker images and in Fedora. ``_candidates`` adds conda's folders.
"""
_RMPI = ("Rmpi/libs/Rmpi.so", "pbdMPI/libs/pbdMPI.so")
_OWN = re.compile(
    r"(mpi(run|exec|cc|cxx|c\+\+|CC|f77|f90|fort|java|version|vars|chversion|exec\.\w+|run\.\w+)"
    r"|mpi-\w+|ompi[-_].*|orte.*|opal.*|osh.*|shmem.*|prte.*|prun.*|pterm.*|pmix.*|hydra.*|impi_.*|IMB-.*)\Z"
)
"""A pattern for programs that belong to an MPI, such as mpirun. toolkit ignores these programs, because they
do not show which MPI the user's programs load.
"""
_MAGIC = b"\x7fELF"
_SHELL_SCRIPT = re.compile(rb"#! ?\S{0,100}\b(?:ba|da|k|z)?sh\b")
_LINE = 128
_MOST_SCRIPTS = 50
"""Maximum number of shell scripts that toolkit reads to find the programs that they start."""
_SYSTEM = ("/usr/bin", "/usr/libexec", "/usr/sbin")
_MOST = 600
_MOST_OF_SYSTEM = 3000
_HEAD = 4 << 20
_ALL = 96 << 20
"""Maximum number of bytes to read in one search for programs. For one program, toolkit reads a few hundred
thousand bytes.
"""
_STATIC = (("Open MPI", (b"ompi_mpi_init", b"mca_base_")), ("MPICH", (b"MPIR_", b"MPIDI_", b"PMI_FD")))
"""For each MPI, texts that all occur in a program if this MPI is statically linked into the program. One text
is not enough, because Hydra and Slurm also contain some of these texts.
"""
_MOST_READ = 48 << 20


def loaded_mpis(loader: Loader, places: SearchFolders, entrypoint: tuple[str, ...]) -> dict[str, str]:
    """Return the programs in ``places``, the image's search folders, that need an MPI. Each program's path
    maps to the real path of its MPI.

    An empty path means that ld.so does not find the MPI. toolkit also reads the first program of
    ``entrypoint``, the image's start command.
    """
    extensions = dict(filter(None, (find_extension(loader, site) for site in places.sites)))
    return {**extensions, **_all_loading(loader, _candidates(loader, places, entrypoint))}


def of_wrappers(loader: Loader, places: SearchFolders, programs: dict[str, str]) -> dict[str, str]:
    """Return the path of the MPI for each program that finds its MPI only if a shell script starts the
    program.

    The image contains this script, which sets LD_LIBRARY_PATH, for example. ``programs`` is the result of
    :func:`loaded_mpis`.
    """
    lost = {files.resolve(loader.tree, path): path for path, library in programs.items() if not library}
    scripts = (*places.other_programs, *_programs(loader, places.programs)) if lost else ()
    found: dict[str, str] = {}
    left = _MOST_SCRIPTS
    # If toolkit reaches its limit for the bytes to read (CheckFailed), return the result for the scripts that
    # toolkit has read.
    with suppress(CheckFailed):
        for script in islice(scripts, _MOST):
            if not _SHELL_SCRIPT.match(files.read(loader.tree, script, _LINE) or b""):
                continue
            left -= 1
            if left < 0 or len(found) == len(lost):
                break
            started = resolve_command(loader, (script,))
            path = None if started.reason else lost.get(files.resolve(loader.tree, started.path))
            if path in found or path is None:
                continue
            if library := _loaded_mpi(Loader(loader.tree, dict(started.environment)), path):
                found[path] = library
    return found


def missing_mpis(loader: Loader, programs: dict[str, str]) -> dict[str, str]:
    """Return the soname of the missing MPI library, for each program whose MPI library ld.so does not find.

    ``programs`` is the result of :func:`loaded_mpis`.
    """
    missing = (path for path, library in programs.items() if not library)
    return {path: name for path in missing if (name := named_mpi(loader, path))}


def named_mpi(loader: Loader, path: str) -> str:
    """Return the soname of the MPI that a file needs, directly or through a library; empty if the file needs
    no MPI.
    """
    return next((name for name in loader.closure(path)[0] if MPI_SONAME.match(name)), "")


def of_command(loader: Loader, places: SearchFolders, program: StartedProgram) -> dict[str, str] | None:
    """Return the path of the MPI for each file through which a program loads an MPI.

    The file is the program itself, or an extension of mpi4py or Horovod. An empty path means that ld.so does
    not find the MPI. If the MPI is statically linked into the program, the MPI's path is the path of the
    program. The result is None if toolkit finds no such file.
    """
    if program.reason or not program.path:
        return None
    if program.python:
        return _of_python(loader, program, sites_of(loader, program, places.sites))
    library = _loaded_mpi(loader, program.path)
    if library is not None:
        return {program.path: library}
    return {program.path: program.path} if linked_into(loader, program.path) else None


def _of_python(loader: Loader, program: StartedProgram, sites: tuple[str, ...]) -> dict[str, str] | None:
    libraries: dict[str, str] = {}
    for module in ("mpi4py", "horovod"):
        if not needs_mpi_module(program, module):
            continue
        for site in sites:
            if own := _of_module(loader, site, module):
                libraries |= own
                break
    return libraries or None


def _of_module(loader: Loader, site: str, module: str) -> dict[str, str]:
    """Return the path of the MPI for each extension that loads an MPI, in one package.

    ``site`` is the folder with Python packages, and ``module`` is the package's name.
    """
    if module == "mpi4py" and (extension := find_extension(loader, site)):
        return dict([extension])
    patterns = [p for p in (_MPI4PY, *_EXTENSIONS) if p.startswith(f"{module}/")]
    paths = (path for pattern in patterns for path in files.glob(loader.tree, f"{site}/{pattern}"))
    loaded = ((path, _loaded_mpi(loader, path)) for path in paths)
    return {path: library for path, library in loaded if library is not None}


def linked_into(loader: Loader, path: str) -> str:
    """Return the name of the MPI that is statically linked into a program, such as ``Open MPI``. The name is
    empty if the program contains no MPI.
    """
    content = files.read(loader.tree, path, _MOST_READ) or b""
    return next((name for name, texts in _STATIC if all(text in content for text in texts)), "")


def behind_mounts(places: SearchFolders, tree: BoundedTree, image_loader: Loader) -> dict[str, str]:
    """Return the programs and MPIs of an image that a mount hides from a rank. Each path maps to the folder
    over which the runtime mounts a host folder.

    ``places`` are the image's software folders. ``tree`` contains only the files that the rank sees.
    ``image_loader`` finds libraries in all files of the image, including hidden files.
    """
    libraries = loaded_mpis(image_loader, places, ())
    listed = (file for pair in libraries.items() for file in pair if file)
    over = ((file, tree.mount_over(file)) for file in listed)
    return {file: folder for file, folder in over if folder}


def libraries_without_path(loader: Loader, programs: dict[str, str]) -> dict[str, str]:
    """Return the programs that load a different MPI, or find no MPI, if LD_LIBRARY_PATH is not set.

    Each program maps to the path of the MPI that the program then loads; the path is empty if the program
    finds no MPI. ``programs`` is the result of :func:`loaded_mpis`.
    """
    if not loader.library_path:
        return {}
    rest = {name: value for name, value in loader.environment.items() if name != "LD_LIBRARY_PATH"}
    bare = Loader(loader.tree, rest, read_limit=_HEAD)
    differing: dict[str, str] = {}
    # If toolkit reaches its limit for the bytes to read (CheckFailed), return the result for the programs
    # that toolkit has read.
    with suppress(CheckFailed):
        for path, library in programs.items():
            if bare.bytes_read > _ALL:
                break
            if (bare_library := _loaded_mpi(bare, path) or "") != library:
                differing[path] = bare_library
    return differing


def programs_with_fixed_path(loader: Loader, programs: dict[str, str]) -> tuple[str, ...]:
    """Return the programs that are linked to an MPI library and find this library through their RPATH."""
    paths_of_programs: list[str] = []
    for path, library in programs.items():
        elf, name = loader.elf(path), named_mpi(loader, path)
        if library and elf and name in elf.needed and loader.fixes(name, path):
            paths_of_programs.append(path)
    return tuple(paths_of_programs)


def of_system(loader: Loader) -> dict[str, str]:
    """Return the real path of the MPI that each program in ``_SYSTEM`` loads, by the program's path."""
    with skip_forbidden_folders(loader.tree):
        return _all_loading(loader, _programs(loader, _SYSTEM), _MOST_OF_SYSTEM)


def static(
    loader: Loader, places: SearchFolders, entrypoint: tuple[str, ...], programs: dict[str, str]
) -> tuple[str, str] | None:
    """Return the path of the first program that contains a statically linked MPI, and the name of the MPI.

    The result is None if toolkit finds no such program. toolkit skips the paths in ``programs``, because
    these programs load an MPI library.
    """
    left = _MOST_READ
    candidates = (path for path in _candidates(loader, places, entrypoint) if path not in programs)
    for path in _elves(loader, candidates):
        content = files.read(loader.tree, path, left) or b""
        left -= len(content)
        for name, texts in _STATIC:
            if all(text in content for text in texts):
                return path, name
        if left <= 0:
            break
    return None


def _all_loading(loader: Loader, candidates: Iterable[str], limit: int = _MOST) -> dict[str, str]:
    # toolkit derives the glibc version that an image needs from all files that `loader` has read. Files
    # without an MPI must not count, so read each file with a second loader first.
    scout = Loader(loader.tree, loader.environment, read_limit=_HEAD)
    libraries: dict[str, str] = {}
    # If toolkit reaches its limit for the bytes to read (CheckFailed), skip the remaining files.
    with suppress(CheckFailed):
        for path in _elves(loader, candidates, limit):
            if scout.bytes_read > _ALL:
                break
            if _loaded_mpi(scout, path) is not None:
                library = _loaded_mpi(loader, path)
                libraries[path] = library or ""
    return libraries


def _elves(loader: Loader, candidates: Iterable[str], limit: int = _MOST) -> Iterator[str]:
    """Yield the paths of ELF files among the first ``limit`` candidates.

    Omit duplicates, and programs that belong to an MPI, such as mpirun.
    """
    paths: set[str] = set()
    for path in islice(candidates, limit):
        real = files.resolve(loader.tree, path)
        if real is None or real in paths or _OWN.match(posixpath.basename(real)):
            continue
        paths.add(real)
        if files.read(loader.tree, real, len(_MAGIC)) == _MAGIC:
            yield path


def favourite(programs: dict[str, str]) -> list[str]:
    """Return the paths of the MPI libraries that programs load, sorted by the number of programs, largest
    number first.
    """
    return [library for library, _ in Counter(v for v in programs.values() if v).most_common()]


def _candidates(loader: Loader, places: SearchFolders, entrypoint: tuple[str, ...]) -> Iterator[str]:
    for site in places.sites:
        for pattern in _EXTENSIONS if variants(loader, site) else (_MPI4PY, *_EXTENSIONS):
            yield from files.glob(loader.tree, f"{site}/{pattern}")
    beside = (site.partition("/lib/python")[0] for site in places.sites)
    for folder in dict.fromkeys((*_OF_R, *(f"{prefix}/lib/R/library" for prefix in beside))):
        yield from (own for name in _RMPI if files.is_file(loader.tree, own := f"{folder}/{name}"))
    if entrypoint:
        first = entrypoint[0]
        path = first if first.startswith("/") else loader.program(first)
        yield from [path] if path else []
    yield from places.other_programs
    yield from _programs(loader, places.programs)


def _programs(loader: Loader, folders: tuple[str, ...]) -> Iterator[str]:
    for folder in folders:
        for name in files.names(loader.tree, folder):
            if not _OWN.match(name):
                yield posixpath.join(folder, name)


def _loaded_mpi(loader: Loader, path: str) -> str | None:
    """Return the real path of the MPI that a file loads. The path is empty if ld.so does not find the MPI.

    The result is None if the file needs no MPI.
    """
    name = named_mpi(loader, path)
    library = loader.closure(path)[0].get(name)
    if library:
        return files.resolve(loader.tree, library) or library
    return "" if name else None
