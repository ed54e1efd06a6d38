"""Choose a recipe for an image that fits a host, from the rows that this toolkit can build; pure."""

import msgspec

from toolkit.engine.predict import predict
from toolkit.image.known import BaseRow, Known, MpiPackages, known
from toolkit.model.facts import HostFacts, ImageFacts, ImageMpi
from toolkit.model.prediction import Request
from toolkit.model.recipe import HorovodWish, MpiWish, PackageWish, Recipe
from toolkit.versions import within

_GUESSED = "not built yet: taken from recipes/knowledge/versions.toml"


def matched(
    host: HostFacts, image: ImageFacts, request: Request, table: Known | None = None
) -> Recipe | None:
    """Return the first recipe whose image is predicted to work, with what ``image`` is used for in it.

    ``None`` where no row that can be built would work on this host.
    """
    rows = table or known()
    request = msgspec.structs.replace(request, mode=None)
    for base in rows.base:
        for mpi in base.mpi:
            if predict(host, _foreseen(host, base, mpi), request).chosen:
                return _recipe(image, base, mpi, rows)
    return None


def _foreseen(host: HostFacts, base: BaseRow, mpi: MpiPackages) -> ImageFacts:
    """Return the facts of an image that would be built from a row."""
    evidence = dict.fromkeys(("mpi", "mpi.interfaces", "pmix", "glibc", "distribution"), _GUESSED)
    return ImageFacts(
        path="",
        format="recipe",
        architecture=host.architecture,
        distribution=base.name.replace(":", " "),
        glibc=base.glibc,
        mpi=ImageMpi(
            implementation=mpi.implementation,
            version=mpi.version,
            library="libmpi.so.40",
            interfaces=mpi.speaks,
            launcher="/usr/bin/mpirun",
            plugins=True,
            soname="libmpi.so.40",
        ),
        pmix=mpi.pmix,
        libfabric="libfabric.so.1",
        python=base.python,
        evidence=evidence,
        absent=dict.fromkeys(("stack", "glibc_needed", "cpu_level", "ssh", "cuda", "horovod"), _GUESSED),
    )


def _recipe(image: ImageFacts, base: BaseRow, mpi: MpiPackages, table: Known) -> Recipe:
    """Keep what the image is used for: the same TensorFlow and Horovod where they can be built."""
    tensorflow = _version(image.tensorflow, [r.version for r in table.tensorflow if base.python in r.python])
    horovod = None
    if image.horovod and tensorflow:
        fitting = [row.version for row in table.horovod if within(tensorflow, row.tensorflow)]
        horovod = _version(image.horovod, fitting)
    needs_mpi4py = image.mpi4py or image.horovod
    mpi4py = _version(
        image.mpi4py or needs_mpi4py, [r.version for r in table.mpi4py if base.python in r.python]
    )
    name = image.path.rpartition("/")[2] or "the image"
    return Recipe(
        schema="toolkit.recipe/1",
        title=f"In place of {name}, matched to the cluster",
        base=base.name,
        python=PackageWish(version=base.python),
        mpi=MpiWish(implementation="openmpi", version=mpi.version),
        mpi4py=PackageWish(version=mpi4py) if mpi4py else None,
        tensorflow=PackageWish(version=tensorflow) if tensorflow else None,
        horovod=HorovodWish(version=horovod) if horovod else None,
    )


def _version(wanted: str | None, offered: list[str]) -> str | None:
    if not wanted or not offered:
        return None
    return wanted if wanted in offered else offered[-1]
