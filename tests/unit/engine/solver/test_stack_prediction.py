"""Test that facts predicted from ``stacks.toml`` give the same verdict as facts measured in an image."""

from tests.matrix import measured
from tests.unit.engine.examples import HOST, with_
from tests.unit.engine.rules.test_bind import provider
from tests.unit.tables import every_row
from toolkit.engine.predict import predict
from toolkit.engine.solver.stack_prediction import predict_stack, stack_facts
from toolkit.knowledge.stacks import stacks
from toolkit.model.prediction import Request

MEASURED = {
    "bullseye-ompi": ("openmpi", "4.1.0", "debian:bullseye"),
    "bookworm-ompi": ("openmpi", "4.1.4", "debian:bookworm"),
    "trixie-ompi": ("openmpi", "5.0.7", "debian:trixie"),
    "bullseye-mpich": ("mpich", "3.4.1", "debian:bullseye"),
    "bookworm-mpich": ("mpich", "4.0.2", "debian:bookworm"),
    "trixie-mpich": ("mpich", "4.2.1", "debian:trixie"),
}
SERVING_PMI2 = with_(
    HOST, slurm=with_(HOST.slurm, mpi_types=("none", "pmi2"), mpi_default="pmi2"), mpis=(), pmix=None
)
WITHOUT_PMI = with_(SERVING_PMI2, slurm=with_(HOST.slurm, mpi_types=("none",), mpi_default="none"))
REQUESTS = (Request(), Request(nodes=1, ranks_per_node=2), Request(nodes=2, ranks_per_node=2))


def row(component, version, provider):
    (found,) = [r for r in stacks().rows(component) if (r.version, r.provider) == (version, provider)]
    return found


def stack(component, version, base):
    mpi = row(component, version, "debian")
    parts = {c: wish.split(" ") for c, wish in mpi.requires.items() if c != "base"}
    return {
        "base": row("base", base, "base"),
        component: mpi,
        **{c: row(c, number, provider) for c, (provider, number) in parts.items()},
    }


@every_row("name", MEASURED)
@every_row("host", [HOST, SERVING_PMI2, WITHOUT_PMI], ids=["pmix", "pmi2", "none"])
@every_row("request_", REQUESTS, ids=["2x1", "1x2", "2x2"])
def test_a_row_of_debian_is_judged_as_the_image_that_was_measured(name, host, request_):
    image = stack_facts(stacks(), "x86_64", stack(*MEASURED[name]))
    guessed = predict(host, image, request_)
    real = predict(host, measured.image(name), request_)
    # Leave out Gloo, because these images have no Horovod.
    assert {p.mode: p.outcome for p in guessed.predictions if p.mode != "gloo"} == {
        p.mode: p.outcome for p in real.predictions if p.mode != "gloo"
    }
    assert guessed.chosen == real.chosen


def test_a_driver_that_is_too_old_for_the_cuda_closes_every_way():
    taken = {**stack(*MEASURED["bookworm-ompi"]), "cuda": row("cuda", "11.8", "debian")}
    old = with_(HOST, gpu_driver="418.39", absent={})
    assert set(predict_stack(old, stacks(), "x86_64", taken, (), Request()).values()) == {
        "cuda 11.8 needs driver 450.80.02; the host has 418.39"
    }
    new = with_(HOST, gpu_driver="535.54.03", absent={})
    assert predict_stack(new, stacks(), "x86_64", taken, (), Request())["srun-pmix"] == ""


def test_gloo_is_a_way_where_horovod_has_it():
    taken = {**stack(*MEASURED["bookworm-ompi"]), "horovod": stacks().rows("horovod")[0]}
    open_to = predict_stack(WITHOUT_PMI, stacks(), "x86_64", taken, ("mpi", "gloo"), Request())
    assert [mode for mode, trouble in open_to.items() if not trouble] == ["mpirun-container", "gloo"]
    assert "gloo" not in predict_stack(WITHOUT_PMI, stacks(), "x86_64", taken, ("mpi",), Request())


def test_a_pmix_for_something_else_is_not_the_mpis():
    taken = {**stack(*MEASURED["bookworm-mpich"]), "pmix": row("pmix", "4.2.2", "debian")}
    assert stack_facts(stacks(), "x86_64", taken).pmix is None


def test_the_c_library_counts_where_the_hosts_mpi_is_mounted():
    host = provider(glibc_needed="2.38", plugins=None)
    bookworm, trixie = (stack(*MEASURED[name]) for name in ("bookworm-ompi", "trixie-ompi"))
    old = predict_stack(host, stacks(), "x86_64", bookworm, (), Request())["bind"]
    assert "2.38" in old
    assert predict_stack(host, stacks(), "x86_64", trixie, (), Request())["bind"] == ""
