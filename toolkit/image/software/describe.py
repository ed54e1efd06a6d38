"""Describe an image from its files, and compare the files with the image's stack.json, in which toolkit's
build recorded the versions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolkit.image.files import tree as files
from toolkit.image.files.bounded import BoundedTree, Budget
from toolkit.image.files.config import ImageConfig, settings, started_command
from toolkit.image.files.tree import FileTree
from toolkit.image.loader.loader import Loader
from toolkit.image.loader.refusal import refusals
from toolkit.image.loader.scripts import Environment, driver_searched, environment
from toolkit.image.loader.search import places as walk
from toolkit.image.software import cuda, fabric, horovod, needs, wireup
from toolkit.image.software.agent import remote_agent
from toolkit.image.software.command import entry_script
from toolkit.image.software.evidence_log import ImageEvidence
from toolkit.image.software.libraries import Finder, glibc
from toolkit.image.software.mcafiles import mca_files
from toolkit.image.software.mpi import MpiFound
from toolkit.image.software.own_description import ComparedVersions, disagreements, labels, stack
from toolkit.image.software.packages import PackageVersion, debian, python_package, read_distribution
from toolkit.image.software.programs import libraries_without_path, missing_mpis, programs_with_fixed_path
from toolkit.image.software.python import python, reads_home
from toolkit.image.software.running import find_rank_programs
from toolkit.image.software.undecided import doubt, find_decided_mpis, why_undecided, withhold
from toolkit.model.facts import ImageFacts
from toolkit.model.rank import WHOLE_IMAGE, RankView
from toolkit.model.stack import STACK_PATH

_NAMES = frozenset(
    [
        "PATH",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PYTHONPATH",
        "NVIDIA_VISIBLE_DEVICES",
        "SLURM_NODELIST",
    ]
)
_PREFIXES = (
    *("OMPI_", "PMI_", "PMIX_", "PRTE_", "OPAL_", "UCX_", "FI_", "HOROVOD_", "I_MPI_", "MPICH_", "MPIR_"),
    *("MV2_", "NCCL_", "NVIDIA_REQUIRE_", "NVIDIA_DISABLE_REQUIRE"),
)
_STARTED = frozenset({"sif", "squashfs", "sandbox"})
"""The image formats for which Apptainer runs the scripts in ``.singularity.d/env``."""
_NOT_WHOLE = "the image has more folders than toolkit searches"
_NO_HOROVOD = "horovod: the package has no native library"


def describe(
    image_tree: FileTree,
    path: Path | str,
    form: str,
    *,
    architecture: str | None,
    digest: str | None,
    budget: Budget,
    config: ImageConfig | None = None,
    view: RankView = WHOLE_IMAGE,
) -> ImageFacts:
    """Return the facts of an image; ``form`` is the format of the image, such as ``sif``.

    ``config`` is the image's OCI configuration. ``view`` describes a rank: its command, and the files of the
    image that mounts hide. The facts omit hidden files, and describe the MPI that the rank's program loads.

    Raises:
        CheckFailed: if the image exceeds the limits of ``budget``.
    """
    tree = BoundedTree(image_tree, budget, view.hidden)
    book = ImageEvidence()
    # The scripts in .singularity.d/env start with Apptainer's default PATH. settings() inserts the PATH of
    # the OCI configuration later.
    own = {k: v for k, v in (config.env if config else {}).items() if k != "PATH"}
    exports = _with_answers(environment(tree, own), view.told, book)
    variables = settings(config, exports.values)
    base = Loader(tree, variables)
    packages, walked = debian(tree), walk(tree, variables)
    entrypoint = _entrypoint(tree, config, book)
    runs = find_rank_programs(base, walked, entrypoint or (), view, image_tree, budget, book)
    loader, programs, variables = runs.loader, runs.programs, runs.loader.environment
    undecided = {**exports.undecided, **runs.undecided}
    mpis, programs = find_decided_mpis(loader, packages, walked, programs, undecided)
    first = mpis[0] if mpis else None
    finder = Finder(loader, walked, packages, first.libraries if first else {})
    hvd = horovod.read(loader, walked.sites)
    facts = ImageFacts(
        path=str(path),
        format=form,
        digest=_digest(digest, form, book),
        architecture=_architecture(loader, architecture, config, first, book),
        program=runs.program,
        hidden=runs.hidden,
        labels={**(config.labels if config else {}), **labels(tree)},
        entrypoint=entrypoint,
        **_entry_facts(base, entrypoint or ()),
        environment=_environment(variables, undecided, book),
        driver_searched=driver_searched(tree) if form in _STARTED else None,
        stack=_stack(tree, book),
    )
    facts = _add_software(facts, finder, hvd, (mpis, programs), _real(base, "mpirun"), book)
    why = why_undecided(loader, walked, entrypoint or (), mpis, programs, undecided)
    facts = withhold(facts, mpis, why, book) if why else facts
    facts = doubt(facts, undecided, book)
    also = _compared_versions(finder, facts, hvd)
    book.doubt(tree.unread if walked.whole else {**tree.unread, "the content of deep folders": _NOT_WHOLE})
    return msgspec.structs.replace(facts, disagreements=disagreements(facts, also), **book.reasons())


def _add_software(
    facts: ImageFacts,
    finder: Finder,
    hvd: horovod.HorovodPackage,
    mpis_and_programs: tuple[tuple[MpiFound, ...], dict[str, str]],
    mpirun: str | None,
    log: ImageEvidence,
) -> ImageFacts:
    """Add the facts about the software in the image to ``facts``, and return the result.

    Args:
        facts: the facts known so far.
        finder: finds libraries in the image.
        hvd: the image's Horovod package.
        mpis_and_programs: the MPIs of the image, and for each program the path of the MPI that it loads.
        mpirun: the real path of ``mpirun`` on the image's PATH, or None.
        log: records the evidence of each fact.
    """
    mpis, programs = mpis_and_programs
    facts = _system(facts, finder, mpis[0] if mpis else None, log)
    facts = _mpis(facts, finder.loader, mpirun, mpis, programs, log)
    facts = _fabric(facts, finder, log)
    facts = _learning(facts, finder, hvd, log)
    return _demands(facts, finder.loader, log)


def _entry_facts(loader: Loader, entrypoint: tuple[str, ...]) -> dict[str, Any]:
    """Return the facts about the entry point script: its path, and the variables that it sets."""
    entry = entry_script(loader, entrypoint)
    return {"entry_script": entry.path, "entry_sets": _of_interest(entry.variables)} if entry else {}


def _system(facts: ImageFacts, finder: Finder, main_mpi: MpiFound | None, log: ImageEvidence) -> ImageFacts:
    """Add the distribution, the C library and Python to the facts."""
    loader, tree = finder.loader, finder.loader.tree
    return msgspec.structs.replace(
        facts,
        distribution=log.take("distribution", read_distribution(tree), "/etc/os-release: not in the image"),
        glibc=log.take(
            "glibc",
            glibc(tree, _libc(loader, main_mpi)),
            "libc.so.6: not in the image (the image has musl or no C library)",
        ),
        libraries=log.list(
            "libraries", loader.offered_names, f"{len(loader.offered_names)} on the loader's path"
        ),
        python=log.take(
            "python", python(loader, finder.packages), "no folder of the image's PATH contains python3"
        ),
        python_reads_home=reads_home(loader, facts.program.python if facts.program else ""),
        mpi4py=_package(tree, finder.places.sites, "mpi4py", log),
    )


def _mpis(
    facts: ImageFacts,
    loader: Loader,
    mpirun: str | None,
    mpis: tuple[MpiFound, ...],
    programs: dict[str, str],
    log: ImageEvidence,
) -> ImageFacts:
    """Add to the facts the MPIs, the programs that load an MPI, and how the ranks of these MPIs start."""
    first = mpis[0] if mpis else None
    return msgspec.structs.replace(
        facts,
        mpi=wireup.describe_mpi(first, log),
        other_mpis=wireup.other_mpis(mpis, log),
        programs=wireup.programs(programs, log),
        programs_need=missing_mpis(loader, programs),
        refused=refusals(loader, programs),
        programs_otherwise=libraries_without_path(loader, programs),
        programs_fixed=programs_with_fixed_path(loader, programs),
        pmix=wireup.pmix(first, log),
        pmix_components=wireup.pmix_components(first, log),
        pmix_plugins=wireup.pmix_plugins(first),
        mpirun=_path("mpirun", mpirun, "no folder of the image's PATH contains mpirun", log),
        ssh=_path("ssh", *remote_agent(loader, mpirun), log),
        settings=mca_files(loader, first.mpi if first else None),
    )


def _with_answers(env: Environment, answers: Mapping[str, str] | None, log: ImageEvidence) -> Environment:
    """Return the image's variables ``env``, with unknown values replaced by ``answers``, the variables in a
    running container of the image.
    """
    if answers is None:
        return env
    known = {name: value for name, value in env.values.items() if name not in env.undecided}
    printed = {name: answers[name] for name in env.undecided if name in answers}
    for name, value in _of_interest(printed).items():
        log.evidence[f"environment.{name}"] = f"`env` in a container on a node printed {name}={value}"
    return Environment({**known, **printed})


def _environment(variables: dict[str, str], undecided: dict[str, str], log: ImageEvidence) -> dict[str, str]:
    """Return the variables that affect a launch, except variables whose values are unknown."""
    names = {*_of_interest(variables), *_of_interest(undecided)}
    for name in sorted(names & undecided.keys()):
        log.unknown[f"environment.{name}"] = undecided[name]
    return {name: value for name, value in variables.items() if name in names - undecided.keys()}


def _of_interest(variables: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in variables.items() if k in _NAMES or k.startswith(_PREFIXES)}


def _fabric(facts: ImageFacts, finder: Finder, log: ImageEvidence) -> ImageFacts:
    """Add the network libraries to the facts: UCX, libfabric, verbs and the NCCL plugin."""
    mpi = facts.mpi
    path = fabric.libfabric(finder, mpi.prefix if mpi else None)
    lists = {
        "ucx_transports": fabric.ucx_transports(finder),
        "libfabric_providers": fabric.providers(finder, path, mpi),
        "verbs_providers": fabric.verbs(finder),
    }
    return msgspec.structs.replace(
        facts,
        ucx=log.take("ucx", fabric.ucx(finder), "libucp.so.0: not in the image"),
        libfabric=_path("libfabric", path, "libfabric.so.1 on the loader's path: not in the image", log),
        libfabric_version=log.take(
            "libfabric_version", fabric.libfabric_version(finder, path), "libfabric.so.1: not in the image"
        ),
        hwloc=log.take(
            "hwloc",
            fabric.hwloc(finder, mpi.components.get("hwloc", ()) if mpi else ()),
            "libhwloc: ld.so does not find it, and the MPI does not contain hwloc",
        ),
        nccl_ofi=log.take(
            "nccl_ofi",
            fabric.nccl_ofi(finder),
            "libnccl-net*.so that sends through libfabric: not in the image",
        ),
        nccl_ofi_found=fabric.nccl_ofi_found(finder),
        providers_unsearched=fabric.unsearched_folder(finder, path),
        **{name: log.list(name, p.names, p.line, known=p.known) for name, p in lists.items()},
    )


def _learning(
    facts: ImageFacts, finder: Finder, hvd: horovod.HorovodPackage, log: ImageEvidence
) -> ImageFacts:
    """Add the machine learning frameworks and the CUDA libraries to the facts."""
    tensorflow, pytorch = cuda.tensorflow(finder), cuda.pytorch(finder)
    built = {
        "tensorflow_cuda": cuda.tensorflow_built(finder, "cuda_version") if tensorflow else None,
        "tensorflow_cudnn": cuda.tensorflow_built(finder, "cudnn_version") if tensorflow else None,
        "pytorch_cuda": cuda.pytorch_cuda(finder) if pytorch else None,
        "pytorch_rocm": cuda.pytorch_rocm(finder) if pytorch else None,
        "horovod_tensorflow": horovod.built_for(finder.loader, hvd, "tensorflow"),
    }
    of_tensorflow = "TensorFlow was built without CUDA" if tensorflow else "the image lacks TensorFlow"
    without = dict.fromkeys(("tensorflow_cuda", "tensorflow_cudnn"), of_tensorflow)
    without["pytorch_cuda"] = "PyTorch was built without CUDA" if pytorch else "the image lacks PyTorch"
    without["pytorch_rocm"] = "PyTorch was built without ROCm" if pytorch else "the image lacks PyTorch"
    without["horovod_tensorflow"] = "Horovod has no native library for TensorFlow"
    libraries = {"cuda": "libcudart", "cudnn": "libcudnn", "nccl": "libnccl"}
    where = f"Horovod's native libraries: {', '.join(hvd.libraries.values())}"
    installed = bool(hvd.libraries)
    source = where if installed else _NO_HOROVOD
    compat, folders = cuda.compat(finder)
    return msgspec.structs.replace(
        facts,
        tensorflow=log.take("tensorflow", tensorflow, "the Python package tensorflow: not in the image"),
        pytorch=log.take("pytorch", pytorch, "the Python package torch: not in the image"),
        jax=_package(finder.loader.tree, finder.places.sites, "jax", log),
        horovod=_package(finder.loader.tree, finder.places.sites, "horovod", log),
        horovod_built=log.list("horovod_built", hvd.features if installed else None, source),
        horovod_frameworks=log.list(
            "horovod_frameworks", tuple(hvd.libraries) if installed else None, source
        ),
        cuda_compat=log.take("cuda_compat", compat, "/usr/local/cuda*/compat: no libcuda.so"),
        cuda_compat_folders=folders,
        **{name: log.take(name, version, f"{name}: {without[name]}") for name, version in built.items()},
        **{
            name: log.take(name, cuda.library(finder, soname), f"{soname}.so: not in the image")
            for name, soname in libraries.items()
        },
    )


def _demands(facts: ImageFacts, loader: Loader, log: ImageEvidence) -> ImageFacts:
    """Add the newest glibc version and the highest x86-64 level that a program or library needs."""
    headers = loader.headers()
    return msgspec.structs.replace(
        facts,
        glibc_needed=log.take(
            "glibc_needed",
            needs.glibc_needed(headers),
            "toolkit found no program or library that needs a symbol version GLIBC_*",
        ),
        cpu_level=log.take(
            "cpu_level",
            needs.cpu_level(headers),
            "toolkit found no program or library that states an x86-64 level",
        ),
    )


def _compared_versions(finder: Finder, facts: ImageFacts, hvd: horovod.HorovodPackage) -> ComparedVersions:
    numpy = python_package(finder.loader.tree, finder.places.sites, "numpy")
    whole = "hwloc" in facts.absent or facts.hwloc
    return ComparedVersions(
        numpy=numpy.version if numpy else "" if whole else None,
        hwloc=facts.hwloc or ("" if whole else None),
        operations=hvd.operations,
    )


def _digest(digest: str | None, form: str, log: ImageEvidence) -> str | None:
    if digest is None and form == "sandbox":
        log.absent["digest"] = "the image is a sandbox (a folder); toolkit computes the SHA-256 of files only"
    elif digest is None:
        log.unknown["digest"] = "toolkit does not hash large files, and no checksum file FILE.sha256 exists"
    return digest


def _real(loader: Loader, name: str) -> str | None:
    """Return the real path of a program on the image's PATH, or None."""
    path = loader.program(name)
    return (files.resolve(loader.tree, path) or path) if path else None


def _libc(loader: Loader, main_mpi: MpiFound | None) -> str | None:
    """Return the path of the C library that the first MPI loads or, without an MPI, that /bin/sh loads."""
    loaded = main_mpi.libraries.get("libc.so.6") if main_mpi else None
    return loaded or loader.closure("/bin/sh")[0].get("libc.so.6")


def _path(name: str, path: str | None, absence_reason: str, log: ImageEvidence) -> str | None:
    log.take(name, PackageVersion(path, path) if path else None, absence_reason)
    return path


def _package(
    tree: FileTree, places: tuple[str, ...], name: str, log: ImageEvidence, *alternatives: str
) -> str | None:
    package = python_package(tree, places, name, *alternatives)
    return log.take(name, package, f"the Python package {name}: not in the image")


def _entrypoint(tree: FileTree, config: ImageConfig | None, log: ImageEvidence) -> tuple[str, ...] | None:
    words, where = started_command(tree, config)
    if words:
        log.evidence["entrypoint"] = where
    else:
        log.absent["entrypoint"] = where
    return words or None


def _architecture(
    loader: Loader,
    header_architecture: str | None,
    config: ImageConfig | None,
    main_mpi: MpiFound | None,
    log: ImageEvidence,
) -> str | None:
    if header_architecture:
        log.evidence["architecture"] = f"the SIF's header: {header_architecture}"
        return header_architecture
    if config and config.architecture:
        log.evidence["architecture"] = f"{config.origin}: {config.architecture}"
        return config.architecture
    if loader.architecture:
        log.evidence["architecture"] = "{1}: {0}".format(*loader.architecture)
        return loader.architecture[0]
    # If the image has no shell, as with Nix or Guix, use the architecture of the MPI library.
    library = loader.elf(main_mpi.mpi.library) if main_mpi else None
    if main_mpi and library and library.architecture:
        log.evidence["architecture"] = f"{main_mpi.mpi.library}: {library.architecture}"
        return library.architecture
    log.unknown["architecture"] = "toolkit can read neither the shell nor another program of the image"
    return None


def _stack(tree: FileTree, log: ImageEvidence) -> dict[str, object] | None:
    content, why = stack(tree)
    if content is not None:
        log.evidence["stack"] = f"{STACK_PATH}: {len(content)} entries"
    elif why:
        log.unknown["stack"] = why
    else:
        log.absent["stack"] = f"{STACK_PATH}: not in the image"
    return content
