"""Test which fault toolkit tells users to fix first if launch modes fail for several reasons."""

from tests.unit.engine.examples import HOST, IMAGE, INTEL_MPI, image_with, with_, without
from toolkit.engine.main_fault import concerns_all, main_fault
from toolkit.engine.predict import predict
from toolkit.model.prediction import Mode, Request

NO_LIBFABRIC = without(image_with(INTEL_MPI), "libfabric")


def of(host, image, asked: Mode | None = None) -> tuple[str, bool]:
    verdict = predict(host, image, Request(mode=asked))
    found = main_fault(verdict, asked)
    return (found.id, concerns_all(found, verdict)) if found else ("", False)


def test_what_concerns_the_most_ways_that_fail_comes_first():
    assert of(HOST, NO_LIBFABRIC)[0] == "libfabric-missing"
    assert of(without(HOST, "runtime"), IMAGE) == ("runtime-absent", True)


def test_only_what_stands_in_the_way_that_was_asked_for_counts():
    assert of(HOST, IMAGE, "srun-pmi2")[0] == "image-lacks-pmi2"
    assert of(HOST, NO_LIBFABRIC, "gloo")[0] != "libfabric-missing"


def test_advice_and_what_is_not_decided_stand_in_no_way():
    leaky = with_(without(HOST, "runtime"), environment={"OMPI_MCA_btl": "openib"})
    verdict = predict(leaky, IMAGE, Request())
    assert "host-settings-leak" in {f.id for f in verdict.findings}
    assert of(leaky, IMAGE)[0] == "runtime-absent"
    assert of(HOST, IMAGE, "srun-pmix") == ("", False)
