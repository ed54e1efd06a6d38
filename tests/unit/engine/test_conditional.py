"""Test predictions from tickets, which state few facts, and from the facts in public reports."""

import pytest

from tests.field.cases import can_be_graded, partly, read
from tests.unit.tables import every_row
from toolkit.engine.conditional import MOST_FACTS, answer_ticket
from toolkit.engine.ticket_facts import host_of, image_of, request_of
from toolkit.engine.usual_facts import fill
from toolkit.errors import BadInput
from toolkit.knowledge.usual import usual_properties
from toolkit.model.facts import ContainerRuntime, HostFacts, ImageFacts
from toolkit.model.prediction import Request
from toolkit.model.ticket import Ticket, TicketCluster, TicketImage

RIGHT = 206
"""The least number of public reports with a right answer. If the engine improves, raise this number."""
OPEN_MPI = TicketImage(mpi="openmpi 4.1.4")


def answer(cluster: TicketCluster, image: TicketImage = OPEN_MPI, mode="srun-pmix"):
    return answer_ticket(host_of(cluster), image_of(image), Request(nodes=2, ranks_per_node=2), mode)


def test_the_stated_facts_of_public_reports_lead_to_right_answers():
    answers = [partly(case) for case in read() if can_be_graded(case)]
    assert all(len(found.decides) <= MOST_FACTS for found, _ in answers)
    assert sum(right for _, right in answers) >= RIGHT


def test_nothing_stated_is_an_ordinary_cluster():
    host, image = fill(HostFacts(place=""), ImageFacts(path="", format=""))
    assert (host.slurm and host.slurm.version, host.runtime and host.runtime.setuid) == ("24.11", False)
    assert "gpus" in host.absent
    assert host.architecture == image.architecture == "x86_64"


def test_stated_facts_stay():
    host, image = fill(
        host_of(TicketCluster(slurm="22.05", offers=("pmix", "pmix_v4"), architecture="aarch64")),
        image_of(OPEN_MPI),
    )
    assert host.slurm and (host.slurm.version, host.slurm.mpi_types) == ("22.05", ("pmix", "pmix_v4"))
    assert (host.pmix, image.pmix, image.architecture) == ("4.2.9", "3.2.3", "aarch64")


def test_the_other_processor_is_taken_from_the_side_that_states_it():
    host, image = fill(HostFacts(place=""), image_of(TicketImage(mpi="none", architecture="aarch64")))
    assert host.architecture == image.architecture == "aarch64"


def test_what_srun_offers_decides_and_is_named_with_its_command():
    found = answer(TicketCluster(slurm="24.11"))
    assert found.prediction.outcome == "ok"
    (first, *_) = found.decides
    assert first.question.fact == "host.slurm.mpi_types"
    assert (first.assumed, first.otherwise) == ("srun offers none, pmi2, pmix, pmix_v5", ("unavailable",))
    assert first.question.command == "srun --mpi=list"


def test_a_stated_fact_is_not_asked_again():
    found = answer(TicketCluster(offers=("pmi2",)))
    assert found.prediction.outcome == "unavailable"
    assert "host.slurm.mpi_types" not in {one.question.fact for one in found.decides}


def test_the_usual_mpi_of_the_mode_is_assumed_and_decides():
    found = answer(TicketCluster(), TicketImage())
    assert found.prediction.outcome == "ok"
    first = found.decides[0]
    assert (first.question.fact, first.assumed) == ("image.mpi", "the image has Open MPI 4.1.6")
    assert "singletons" in first.otherwise


def test_an_unknown_mpi_does_not_matter_if_no_container_starts():
    host = HostFacts(place="x", distribution="rhel 6.5", runtime=ContainerRuntime(
        name="singularity", version="3.5.2", path="/usr/bin/singularity", setuid=False,
    ))  # fmt: skip
    found = answer_ticket(host, image_of(TicketImage()), Request(nodes=1, ranks_per_node=1), "srun-none")
    assert found.prediction.outcome == "unavailable"
    assert "image.mpi" not in {one.question.fact for one in found.decides}


@every_row("distribution,kernel,glibc", [
    ("centos 7.9", "3.10.0", "2.17"),
    ("ubuntu 22.04 (jammy)", "5.15", "2.35"),
    ("rocky 10", "6.12.0", "2.39"),
    ("debian 1", "5.14.0", "2.34"),
    ("gentoo 17", "5.14.0", "2.34"),
])  # fmt: skip
def test_the_distribution_states_kernel_and_c_library(distribution, kernel, glibc):
    image = ImageFacts(path="", format="", distribution=distribution)
    host, filled = fill(HostFacts(place="", distribution=distribution), image)
    assert (host.kernel, host.glibc) == (kernel, glibc)
    assert filled.glibc == glibc.replace("2.34", "2.35")  # the usual image is of Ubuntu 22.04


@every_row("cluster,mode,outcome", [
    (TicketCluster(mpirun="openmpi 4.1.4"), "mpirun-host", "ok"),
    (TicketCluster(mpirun="intel 2021.9"), "mpirun-host", "init-failure"),
    (TicketCluster(fabric="slingshot"), "srun-pmix", "ok"),
    (TicketCluster(fabric="infiniband", runtime="singularity 3.8", setuid=True), "srun-pmix", "ok"),
])  # fmt: skip
def test_answers_follow_the_ticket(cluster, mode, outcome):
    assert answer(cluster, mode=mode).prediction.outcome == outcome


@every_row("image,cluster,mode,outcome", [
    (TicketImage(mpi="intel 2021.9"), TicketCluster(), "srun-pmi2", "ok"),
    (OPEN_MPI, TicketCluster(mpirun="openmpi 4.1.5"), "bind", "ok"),
    (TicketImage(mpi="none"), TicketCluster(), "bind", "unknown"),
])  # fmt: skip
def test_usual_facts_follow_what_is_stated(image, cluster, mode, outcome):
    said = answer(cluster, image, mode)
    assert said.prediction.outcome == outcome, said.prediction.because
    assert outcome == "ok" or [one.question.fact for one in said.decides] == ["host.mpis"]


@every_row("runtime,setuid,kind", [
    ("singularity 3.8", True, "sif"),
    ("apptainer 1.0", True, "sif"),
    ("apptainer 1.3.4", False, "sif"),
    ("podman 5.4", False, "docker-archive"),
])  # fmt: skip
def test_the_runtime_tells_how_it_is_installed_and_what_it_starts(runtime, setuid, kind):
    host, image = fill(host_of(TicketCluster(runtime=runtime)), image_of(OPEN_MPI))
    assert host.runtime and (host.runtime.setuid, image.format) == (setuid, kind)


@every_row("ticket", [
    {"cluster": TicketCluster(mpirun="openmpi")},
    {"cluster": TicketCluster(fabric="token ring")},
    {"cluster": TicketCluster(runtime="docker 27")},
    {"cluster": TicketCluster(runtime="apptainer new")},
    {"image": TicketImage(mpi="lam 7.1")},
])  # fmt: skip
def test_a_name_that_toolkit_does_not_know_is_refused(ticket):
    with pytest.raises(BadInput, match=r"choices|is not the name and release"):
        host_of(ticket.get("cluster", TicketCluster()))
        image_of(ticket.get("image", TicketImage()))


def test_the_shape_of_the_job_is_taken():
    assert request_of(Ticket()) == Request(nodes=2, ranks_per_node=1)


def test_each_question_names_a_fact_and_a_command():
    for question in usual_properties().question:
        side, *parts = question.fact.split(".")
        kind = HostFacts if side == "host" else ImageFacts
        assert parts[0] in kind.__struct_fields__
        assert question.command
        assert question.asks
