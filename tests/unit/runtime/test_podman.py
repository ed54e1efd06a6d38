"""Test rootless podman as a runtime: its command, shared folders, the probe, and when toolkit chooses it."""

import msgspec
import pytest

from tests.unit.engine.whole import IMAGE, MPICH, absent, runtime
from tests.unit.tables import every_row
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict, predict_plan
from toolkit.engine.wireup import hides
from toolkit.errors import BadInput
from toolkit.job.request.inputs import StartableImage, find_startable
from toolkit.launch.loaded import command_of, with_runtime
from toolkit.model.facts import ContainerRuntime
from toolkit.model.job import JobSpec
from toolkit.model.prediction import Request
from toolkit.model.site import Container, Site
from toolkit.probe.evidence import Section
from toolkit.runtime import RUNTIMES, podman, runtime_of_name

PODMAN = ContainerRuntime(name="podman", version="5.4.2", path="/usr/bin/podman", setuid=False)
BOTH = msgspec.structs.replace(runtime(), other_runtimes=(PODMAN,))
ALONE = msgspec.structs.replace(runtime(), runtime=PODMAN)
ARCHIVE = msgspec.structs.replace(
    IMAGE, format="docker-archive", compression=None, absent={**IMAGE.absent, "compression": "it is no SIF"}
)
SPEC = JobSpec(name="a", image="/work/a b.tar", command=("true",), directory="/work/runs/My_Run-20261125")
SITE = Site(schema="toolkit.site/1", title="s", container=Container(command="podman"))


def test_every_option_is_in_front_of_the_image_and_a_path_is_mounted_under_its_name():
    words = podman.words("podman", ("--env-host", "--env=A=b c"), ("/work", "/a:/b:ro", "/work"))
    assert words[:3] == ["podman", "--cgroup-manager=cgroupfs", "run"]
    assert words[-4:] == ["--env-host", "--env=A=b c", "--volume=/work:/work", "--volume=/a:/b:ro"]
    assert {"--rm", "--pull=never", "--entrypoint="} <= set(words)


def test_the_socket_for_pmi_is_kept_by_a_shell_that_knows_its_number():
    words = podman.words("/opt/podman", (podman.DESCRIPTOR, "--env-host"), ())
    assert words[:2] == ["sh", "-c"]
    assert "--preserve-fd=$PMI_FD" in words[2]
    assert words[3] == "/opt/podman"
    assert podman.DESCRIPTOR not in words


@every_row(("version", "known"), [("5.4.2", True), ("4.3.1", False), ("", False)])
def test_a_release_that_cannot_keep_a_socket_is_not_asked_to(version: str, known: bool):
    found = msgspec.structs.replace(PODMAN, version=version)
    assert (podman.DESCRIPTOR in podman.standard(IMAGE, found)) is known


def test_variables_of_the_image_win_over_those_of_the_host():
    image = msgspec.structs.replace(
        IMAGE, environment={"PATH": "/opt/bin:/bin", "LD_LIBRARY_PATH": "/opt/lib"}
    )
    words = podman.standard(image, PODMAN)
    assert words.index("--env-host") < words.index("--env=PATH=/opt/bin:/bin")
    assert "--env=LD_LIBRARY_PATH=/opt/lib" in words
    assert any(w.startswith("--env=PATH=/usr/local") for w in podman.standard(ARCHIVE, PODMAN)) or "PATH" in (
        ARCHIVE.environment
    )


def test_an_archive_has_a_name_for_the_job_and_a_reference_stays_as_it_is():
    assert podman.image(SPEC) == ("localhost/toolkit/my-run-20261125:latest",)
    assert podman.image(msgspec.structs.replace(SPEC, image="localhost/a:b")) == ("localhost/a:b",)


def test_the_probe_reads_release_and_ranges():
    said = (
        "path /usr/bin/podman",
        "podman version 4.3.1",
        "setting crun = yes",
        "setting subordinate ids = no",
    )
    found = podman.read(Section("podman", said, 0))
    assert found is not None
    assert (found.name, found.version, found.setuid) == ("podman", "4.3.1", False)
    assert found.settings == {"crun": "yes", "subordinate ids": "no"}
    assert podman.read(Section("podman")) is None


def test_a_runtime_is_known_by_name_and_path():
    assert [runtime_of_name(name) for name in ("podman", "/opt/podman", "singularity", "other", "")] == [
        podman, podman, RUNTIMES[0], RUNTIMES[0], RUNTIMES[0],
    ]  # fmt: skip


def test_the_first_runtime_is_used_unless_another_is_asked_for():
    assert with_runtime(BOTH, None, ()).runtime == BOTH.runtime
    chosen = with_runtime(BOTH, None, (), "podman")
    assert (chosen.runtime, chosen.other_runtimes) == (PODMAN, (BOTH.runtime,))
    assert with_runtime(BOTH, SITE, ()).runtime == PODMAN
    assert with_runtime(chosen, None, (), "apptainer").runtime == BOTH.runtime


def test_a_runtime_that_is_not_there_is_absent_and_the_message_names_the_other():
    none = with_runtime(runtime(), None, (), "podman")
    assert none.runtime is None
    assert "podman: not found" in none.absent["runtime"]
    assert with_runtime(absent(runtime(), "runtime"), None, (), "podman").runtime is None


def test_a_runtime_that_did_not_answer_in_time_is_unknown_and_not_absent():
    late = msgspec.structs.replace(
        runtime(), unknown={**runtime().unknown, "other_runtimes": "podman --version: no answer in time"}
    )
    chosen = with_runtime(late, None, (), "podman")
    assert chosen.runtime is None
    assert "runtime" not in chosen.absent
    assert chosen.unknown["runtime"] == "podman --version: no answer in time"


def test_the_command_is_what_was_asked_for_then_the_sites_then_the_hosts():
    assert command_of(BOTH, SITE, "apptainer") == "apptainer"
    assert command_of(BOTH, SITE) == "podman"
    assert command_of(ALONE, None) == "podman"


@every_row(
    ("form", "command", "said"),
    [
        ("sif", "podman", "podman needs a docker-archive or oci-archive"),
        ("docker-archive", "apptainer", "toolkit launch needs a SIF"),
    ],
)
def test_a_runtime_refuses_the_images_of_another(form: str, command: str, said: str):
    image = StartableImage("a", msgspec.structs.replace(IMAGE, path="a", format=form), "0", None, "/a")
    with pytest.raises(BadInput, match=said):
        find_startable(image, command)
    assert find_startable(image) is image


def test_podman_and_a_sif_cannot_be_launched():
    said = predict_plan(ALONE, IMAGE, Request(), plan(ALONE, IMAGE, Request(), "srun-pmix"))
    assert (said.outcome, "SIF" in said.because) == ("unavailable", True)


def test_what_podman_shares_follows_from_its_options():
    from toolkit.engine.predict import case_of

    request = Request(nodes=1, ranks_per_node=2, directory="/work/runs/a")
    made = plan(ALONE, ARCHIVE, request, "srun-pmix")
    case = case_of(ALONE, ARCHIVE, request, made)
    shared = ("environment", "shm", "processes", "network", "identity", "descriptors")
    assert not any(hides(case, aspect) for aspect in shared)
    assert "/tmp" in made.binds
    assert "--workdir=/work/runs/a" in made.container
    bare = msgspec.structs.replace(made, container=(), binds=())
    case = case_of(ALONE, ARCHIVE, request, bare)
    assert all(hides(case, aspect) for aspect in (*shared, "tmp", "home"))


def test_the_engine_chooses_podman_launches_as_others():
    assert predict(ALONE, ARCHIVE, Request()).chosen == "srun-pmix"
    mpich = msgspec.structs.replace(ARCHIVE, mpi=MPICH)
    assert predict(ALONE, mpich, Request()).chosen == "srun-pmi2"
