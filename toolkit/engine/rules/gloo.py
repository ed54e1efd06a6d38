"""Rules about Horovod without MPI: ranks that find each other through Gloo."""

from toolkit.engine.case import Case
from toolkit.engine.guarded import Undecided
from toolkit.engine.rule import MPI_MODES, Hit, rule

_SOURCE = "horovod/horovod:docs/gloo.rst"


@rule(
    "gloo-lacks-horovod",
    "There is no Horovod in the image, which alone can do without MPI",
    severity="error",
    fix="use an image with Horovod",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("image.horovod",),
    modes=("gloo",),
)
def gloo_lacks_horovod(case: Case) -> Hit | None:
    """Gloo is Horovod's own way to wire up ranks; no other program speaks it."""
    if case.image.horovod:
        return None
    return Hit(case.cite("image.horovod"), "unavailable")


@rule(
    "horovod-lacks-gloo",
    "Horovod in the image was built without Gloo",
    severity="error",
    fix="build it with HOROVOD_WITH_GLOO=1 (toolkit image build does)",
    instead=MPI_MODES,
    source=_SOURCE,
    facts=("image.horovod", "image.horovod_built"),
    modes=("gloo",),
)
def horovod_lacks_gloo(case: Case) -> Hit | None:
    """Asked for a controller that it does not have, Horovod ends in ``hvd.init()``."""
    if not case.image.horovod:
        return None
    built = case.image_facts.horovod_built
    if built is None:  # its libraries do not say
        raise Undecided("image.horovod_built")
    if "gloo" in built:
        return None
    return Hit(case.cite("image.horovod_built"), "init-failure", "Horovod has no Gloo to wire up its ranks")
