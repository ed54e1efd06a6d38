"""Find the MPI of the image that programs load if the launch changes LD_LIBRARY_PATH."""

from posixpath import dirname as _folder

import msgspec

from toolkit.engine.host_variables import name_inside, runtime_prefixes
from toolkit.engine.traits import has_option, runtime_of
from toolkit.folders import is_system
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.mpifacts import ImageMpi
from toolkit.model.prediction import Plan

_OF_PMIX = ("pmix", "pmix_components", "pmix_plugins")


def forced_paths(host: HostFacts) -> tuple[str, ...]:
    """Return the names of the host's variables, such as APPTAINERENV_LD_LIBRARY_PATH, that make the runtime
    set LD_LIBRARY_PATH in the container. If the result has several names, the runtime uses the first.
    """
    named = (name for name in sorted(host.environment) if name_inside(name) == "LD_LIBRARY_PATH")
    return tuple(name for name in named if name.startswith(runtime_prefixes(host)))


def launch_search_path(host: HostFacts, plan: Plan) -> str | None:
    """Return the LD_LIBRARY_PATH that a launch sets in the container; ``None`` if the launch does not set it.

    The result is an empty text if a variable of the host, such as APPTAINERENV_LD_LIBRARY_PATH, sets
    LD_LIBRARY_PATH, but the facts contain only this variable's name.
    """
    asked = plan.env.get("LD_LIBRARY_PATH")
    forced = (name for name in forced_paths(host) if name not in plan.unset)
    return asked if asked is not None else next((host.environment[n] for n in forced), None)


def apply_search_path(host: HostFacts, image: ImageFacts, plan: Plan) -> ImageFacts:
    """Return the facts of the image, with the MPI that programs load under the launch's LD_LIBRARY_PATH.

    If the launch replaces the image's LD_LIBRARY_PATH, the loader may no longer find an MPI whose folder only
    the image's LD_LIBRARY_PATH names. Programs then load another MPI of the image, or find no MPI. If toolkit
    cannot decide which MPI programs load, the image's MPI is unknown in the result.
    """
    asked = launch_search_path(host, plan)
    if asked is None and _distribution_first(host, image, plan):
        return with_unknown_mpi(
            image, "the runtime sets LD_LIBRARY_PATH, which the loader searches before DT_RUNPATH"
        )
    if asked is None or image.mpi is None or not image.programs_otherwise:
        return image
    if not asked and "LD_LIBRARY_PATH" not in plan.env:
        line = "the host sets LD_LIBRARY_PATH to an unknown value, so the MPI that programs load is unknown"
        return with_unknown_mpi(image, line)
    return _search_in(image, asked)


def apply_variables(host: HostFacts, image: ImageFacts, plan: Plan) -> ImageFacts:
    """Return the facts of the image with only the environment variables that the runtime sets in a container.

    Charliecloud, for example, sets a variable from the image's configuration only if the launch passes the
    option ``--set-env`` for this variable.

    Without the image's PATH, the shell finds a command by its name only in the folders of the distribution.
    """
    option = runtime_of(host).SET_ENV
    if not option or option.rstrip("=") in plan.container:
        return image
    words = (word.removeprefix(option) for word in plan.container if word.startswith(option))
    kept = dict(word.split("=", 1) for word in words if "=" in word)
    found = msgspec.structs.replace(image, environment=kept)
    if image.mpirun and "PATH" in image.environment.keys() - kept and not is_system(_folder(image.mpirun)):
        absent = {**image.absent, "mpirun": "the runtime does not set the image's PATH"}
        found = msgspec.structs.replace(found, mpirun=None, absent=absent)
    lost = "LD_LIBRARY_PATH" in image.environment.keys() - kept and image.programs_otherwise
    return _search_in(found, "") if lost else found


def _search_in(image: ImageFacts, path: str) -> ImageFacts:
    """Return the facts of the image that apply if LD_LIBRARY_PATH has the value ``path``."""
    folders = path.split(":")
    if image.mpi is None or _folder(image.mpi.library) in folders:
        return image
    programs = {**image.programs, **image.programs_otherwise}
    named = [m for m in image.other_mpis if _folder(m.library) in folders and m.soname == image.mpi.soname]
    if named:
        programs = {**programs, **dict.fromkeys(image.programs_otherwise, named[0].library)}
    changed = msgspec.structs.replace(image, programs=programs, programs_otherwise={})
    other = _other_mpi(image, programs)
    if other is None or other.library == image.mpi.library:
        return changed
    return _with_mpi(changed, other, path)


def _with_mpi(image: ImageFacts, mpi: ImageMpi, path: str) -> ImageFacts:
    """Return the facts of an image in which programs load the MPI ``mpi`` because LD_LIBRARY_PATH has the
    value ``path``.
    """
    line = f"{mpi.library}: loaded if LD_LIBRARY_PATH is {path}"
    evidence, absent, unknown = (
        _of_other(book, image.other_mpis.index(mpi)) for book in (image.evidence, image.absent, image.unknown)
    )
    if mpi.pmix is None and "pmix" in (mpi.interfaces or ()):
        unknown["pmix"] = f"{line}; the release of its PMIx is unknown"
    elif mpi.pmix is None:
        absent["pmix"] = f"{line}: this library has no PMIx client"
    unknown |= dict.fromkeys(_OF_PMIX[1:], f"{line}: the components of this library's PMIx are unknown")
    return msgspec.structs.replace(
        image,
        mpi=mpi,
        pmix=mpi.pmix,
        pmix_components={},
        pmix_plugins=None,
        evidence={**evidence, "mpi": line, "pmix": line},
        absent=absent,
        unknown=unknown,
    )


def _of_other(book: dict[str, str], number: int) -> dict[str, str]:
    """Return a copy of ``book``, a table with fact names as keys. In the copy, the lines about
    ``other_mpis[number]`` replace the lines about the image's MPI (``mpi``).
    """
    place = f"other_mpis.{number}"
    own = {
        name.replace(place, "mpi", 1): line
        for name, line in book.items()
        if f"{name}.".startswith(f"{place}.")
    }
    kept = {name: line for name, line in book.items() if name.partition(".")[0] not in {"mpi", *_OF_PMIX}}
    return {**kept, **own}


def _distribution_first(host: HostFacts, image: ImageFacts, plan: Plan) -> bool:
    """Return whether programs may load the distribution's MPI instead of the MPI in their DT_RUNPATH (a
    library path in a program's file).

    From 1.5 on, Apptainer sets LD_LIBRARY_PATH to the distribution's folders if the launch has ``--nv`` and
    the image sets no LD_LIBRARY_PATH. The loader searches LD_LIBRARY_PATH before DT_RUNPATH but after
    DT_RPATH (ld.so(8)); facts do not show whether a program has a DT_RPATH.
    """
    mpi = image.mpi
    if mpi is None or "--nv" not in plan.container:
        return False
    if "LD_LIBRARY_PATH" in image.environment or is_system(_folder(mpi.library)):
        return False
    if not has_option(host, "--nv behind the image's own"):
        return False
    namesakes = (m for m in image.other_mpis if m.soname and m.soname == mpi.soname)
    return any(is_system(_folder(m.library)) for m in namesakes)


def with_unknown_mpi(image: ImageFacts, line: str) -> ImageFacts:
    """Return the facts of the image, with every fact about its MPI marked as unknown; ``line`` is
    the reason.
    """
    gone = dict.fromkeys(("mpi", *_OF_PMIX), line)
    return msgspec.structs.replace(
        image, mpi=None, pmix=None, pmix_components={}, pmix_plugins=None, unknown={**image.unknown, **gone}
    )


def _other_mpi(image: ImageFacts, programs: dict[str, str]) -> ImageMpi | None:
    """Return the MPI that all programs in ``programs`` load; ``None`` if they load several MPIs or an unknown
    MPI.
    """
    loaded = set(programs.values())
    known = {mpi.library: mpi for mpi in (*((image.mpi,) if image.mpi else ()), *image.other_mpis)}
    return known.get(loaded.pop()) if len(loaded) == 1 else None
