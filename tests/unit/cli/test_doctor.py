"""Test ``doctor``, ``probe`` and ``explain`` with recorded facts and small images."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.unit.engine.examples import with_
from tests.unit.image.sifs import DATA as TINY
from tests.unit.image.sifs import sandbox
from tests.unit.image.sifs import sif as sif_file
from tests.unit.image.test_inspect import BASE, OPEN_MPI_4
from tests.unit.tables import every_row
from toolkit.cli.doctor.command import command as doctor
from toolkit.cli.explain import command as explain
from toolkit.engine.registry import RULES
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.image.files.tree import FileTree
from toolkit.image.inspect import open_image
from toolkit.job.explanation import ends
from toolkit.job.places import open_runner
from toolkit.model.facts import ImageFacts
from toolkit.probe.probe import load
from toolkit.run.command import Command, Completed

EVIDENCE = Path(__file__).parents[2] / "evidence"
CLUSTER = str(EVIDENCE / "virtual-cluster-login.txt")


@pytest.fixture
def image(tmp_path: Path) -> str:
    return str(sandbox(tmp_path / "image", {**BASE, **OPEN_MPI_4}))


@pytest.fixture
def sif(image: str, monkeypatch: pytest.MonkeyPatch) -> str:
    @contextmanager
    def opened(*given: Any, **options: Any) -> Iterator[tuple[FileTree, ImageFacts]]:
        with open_image(*given, **options) as (tree, facts):
            yield tree, msgspec.structs.replace(facts, format="sif")

    monkeypatch.setattr("toolkit.image.inspect.open_image", opened)
    return image


def run(*words: str) -> Result:
    return CliRunner().invoke(doctor, words, obj={"verbose": False, "quiet": False})


def raised(*words: str) -> BaseException | None:
    return run(*words).exception


def test_a_fitting_image_ends_in_a_command_to_type(sif):
    result = run(sif, "--facts", CLUSTER)
    assert result.exit_code == 0
    assert "Open MPI 4.1.4" in result.stdout
    # The test's terminal has a fixed width, so join wrapped lines.
    line = " ".join(pasted(result.stdout).split())
    assert "→ srun -N 2 -n 2 --mpi=pmix apptainer exec IMAGE env PYTHONNOUSERSITE=1 COMMAND" in line
    # The facts are from another machine, so the suggested launch needs `--host`.
    launch = f"toolkit launch --image {sif} --nodes 2 --host LOGIN_NODE -- COMMAND"
    assert launch in pasted(answered(result.stdout))


def answered(page: str) -> str:
    return page.partition("\n\n")[0]


def pasted(page: str) -> str:
    return " ".join(page.replace("\\\n", "").split())


def test_the_page_fits_a_terminal_and_has_no_colours_in_a_pipe(image):
    result = run(image, "--facts", CLUSTER)
    assert all(len(line) <= 100 for line in result.stdout.splitlines() if image not in line)
    assert "\x1b" not in result.stdout


def test_a_mode_that_fails_exits_1_with_the_reason(image):
    result = run(image, "--facts", CLUSTER, "--mode", "srun-pmi2")
    assert result.exit_code == 1
    assert "init-failure" in result.stdout
    assert "supports neither PMI-1 nor PMI-2" in result.stdout


def test_the_json_has_its_schema(image):
    result = run(image, "--facts", CLUSTER, "--json")
    found = json.loads(result.stdout)
    assert found["schema"] == "toolkit.doctor/1"
    assert found["chosen"] == "srun-pmix"
    assert set(found) == {"schema", "image", "host", "predictions", "chosen", "findings", "silenced"}
    by_mode = {p["mode"]: p for p in found["predictions"]}
    assert by_mode["srun-pmix"]["plan"]["srun"] == ["--mpi=pmix"]
    assert by_mode["mpirun-host"]["plan"]["unset"] == ["OMPI_MCA_mca_base_component_path"]
    assert all({"id", "severity", "title", "evidence", "fix", "source"} <= set(f) for f in found["findings"])


def test_a_recipe_is_judged_by_the_image_that_was_made_of_it(image, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("toolkit.job.request.locations.checkout", lambda: None)
    error = raised("tf2.15-cpu", "--facts", CLUSTER)
    assert isinstance(error, Missing)
    assert error.fix.startswith(
        "make the image: `toolkit image build tf2.15-cpu && toolkit image sif tf2.15-cpu"
    )
    checkout = tmp_path / "checkout"
    made = checkout / "build" / "images" / "tf2.15-cpu.sif"
    made.parent.mkdir(parents=True)
    made.write_bytes(sif_file((TINY / "tiny.gzip").read_bytes()))
    monkeypatch.setattr("toolkit.job.request.locations.checkout", lambda: checkout)
    result = run("tf2.15-cpu", "--facts", CLUSTER)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "tf2.15-cpu.sif on " in " ".join(result.stdout.split())


DOCKERFILE = """FROM debian:12
RUN apt-get update && apt-get install -y openmpi-bin libopenmpi-dev g++ cmake
RUN pip install tensorflow==2.15.1
RUN pip install horovod==0.28.1
"""


def test_a_build_file_is_judged_by_its_text(tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_text(DOCKERFILE)
    result = run(str(file), "--facts", CLUSTER)
    assert result.exit_code == 0
    assert pasted(answered(result.stdout)) == f"Perhaps: srun-pmix. docker build -t my-image {tmp_path}"
    assert "Dockerfile:2: Open MPI 4.1.4, apt package openmpi-bin" in result.stdout
    assert "uses PMIx 4.2.2" in " ".join(result.stdout.split())
    assert len(run(str(file), "--facts", CLUSTER, "--all").stdout) > len(result.stdout)


def test_a_fault_of_a_build_file_is_a_no_and_in_the_json(tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_text("FROM debian:12\nRUN pip install torch horovod\nRUN apt-get install -y mpich\n")
    result = run(str(file), "--facts", CLUSTER)
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "No: Horovod is installed before the MPI, so Horovod is built without MPI."
    )
    found = json.loads(run(str(file), "--facts", CLUSTER, "--json").stdout)
    assert found["schema"] == "toolkit.doctor/1"
    assert found["findings"][0]["id"] == "horovod-before-mpi"
    assert isinstance(raised(str(file), "--facts", CLUSTER, "--fix"), BadInput)


def test_an_unknown_base_leaves_the_answer_open(tmp_path):
    file = tmp_path / "train.def"
    file.write_text("Bootstrap: docker\nFrom: my/base:1\n%post\n  pip install mpi4py\n")
    result = run(str(file), "--facts", CLUSTER)
    assert result.stdout.startswith("Unknown: ")
    assert "train.def:2: toolkit does not know the base image my/base:1" in result.stdout


def test_a_host_alone():
    result = run("--facts", CLUSTER)
    assert result.exit_code == 0
    assert "Apptainer 1.4.5" in result.stdout
    assert json.loads(run("--facts", CLUSTER, "--json").stdout)["image"] is None


@every_row(
    ("slurms", "own", "row"),
    [
        (None, "7.0.0rc1", "PMIx none; mpirun offers 7.0.0rc1"),
        ("5.0.7", "3.2.5", "PMIx 5.0.7; mpirun offers 3.2.5"),
        ("5.0.7", "5.0.7a1", "PMIx 5.0.7"),
        ("5.0.7", None, "PMIx 5.0.7"),
    ],
)
def test_the_pmix_of_slurm_and_that_of_mpirun_are_told_apart(tmp_path, slurms, own, row):
    known = load(Path(CLUSTER))
    launcher = msgspec.structs.replace(known.mpis[0], pmix=own)
    host = with_(known, mpis=(launcher,), pmix=slurms)
    absent = {**host.absent, **({} if slurms else {"pmix": "Slurm has no PMIx plugin"})}
    facts = tmp_path / "facts.json"
    facts.write_bytes(msgspec.json.encode(msgspec.structs.replace(host, absent=absent)))
    lines = [" ".join(line.split()) for line in run("--facts", str(facts)).stdout.splitlines()]
    assert row in lines


def test_an_image_where_slurm_does_not_answer_is_unknown(image):
    result = run(image, "--facts", str(EVIDENCE / "slurm-not-configured.txt"))
    assert result.exit_code == 1
    assert result.stdout.startswith("Unknown: toolkit lacks facts that decide whether the launch works.")


def test_bad_files_and_options(image, tmp_path):
    assert isinstance(raised(str(tmp_path / "missing.sif"), "--facts", CLUSTER), BadInput)
    assert isinstance(raised(image, "--facts", str(tmp_path / "missing.json")), BadInput)
    assert isinstance(raised(image, "--facts", CLUSTER, "--cluster", "x"), BadInput)
    assert isinstance(raised("--explain", "nothing"), BadInput)
    assert run(image, "--nodes", "0").exit_code == 2


def test_every_rule_is_listed_and_has_a_page():
    listed = json.loads(run("--rules", "--json").stdout)["rules"]
    assert [r["id"] for r in listed] == [r.id for r in RULES]
    assert all(r["title"] and r["severity"] and r["source"] for r in listed)
    shown = run("--rules").stdout
    assert sum(not line.startswith(" ") for line in shown.splitlines()) == len(RULES)
    assert max(map(len, shown.splitlines())) <= 80
    for rule in RULES:
        page = run("--explain", rule.id).stdout
        assert rule.source in " ".join(page.split())
        assert max(map(len, page.splitlines())) <= 80


def test_rules_in_json_have_a_schema_and_one_can_be_asked_for():
    assert json.loads(run("--rules", "--json").stdout)["schema"] == "toolkit.rules/1"
    (one,) = json.loads(run("--explain", "slurm-absent", "--json").stdout)["rules"]
    assert one["id"] == "slurm-absent"


def test_a_host_on_which_nothing_can_be_launched_exits_1():
    assert run("--facts", str(EVIDENCE / "no-slurm.txt")).exit_code == 1


def test_no_mpirun_on_a_host_is_no_error_where_srun_works(tmp_path):
    host = with_(load(Path(CLUSTER)), mpis=())
    facts = tmp_path / "facts.json"
    facts.write_bytes(msgspec.json.encode(host))
    result = run("--facts", str(facts), "--json")
    assert result.exit_code == 0
    found = {f["id"]: f["severity"] for f in json.loads(result.stdout)["findings"]}
    assert found["host-launcher-absent"] == "info"


def test_where_nothing_is_known_the_missing_facts_are_named_and_next_is_a_command(image):
    result = run(image, "--facts", str(EVIDENCE / "slurm-not-configured.txt"))
    assert "The prediction depends on unknown facts: host.slurm" in " ".join(result.stdout.split())
    assert "toolkit probe --host LOGIN_NODE -o facts.json" in answered(result.stdout)


def test_a_mode_that_fails_is_answered_with_one_that_works_and_its_command(sif):
    result = run(sif, "--facts", CLUSTER, "--mode", "srun-pmi2")
    advice = "Use mode srun-pmix instead of srun-pmi2: toolkit predicts that srun-pmix works."
    assert advice in " ".join(result.stdout.split())
    launch = f"toolkit launch --image {sif} --nodes 2 --host LOGIN_NODE -- COMMAND"
    assert launch in pasted(answered(result.stdout))


def test_where_no_command_helps_none_is_promised(image, tmp_path):
    host = with_(load(Path(CLUSTER)), runtime=None)
    facts = tmp_path / "facts.json"
    facts.write_bytes(msgspec.json.encode(with_(host, absent={**host.absent, "runtime": "not found"})))
    result = run(image, "--facts", str(facts))
    assert result.exit_code == 1
    assert "\nWhat to do\n  Load a module of Apptainer or Singularity (`module" in result.stdout
    assert "toolkit" not in answered(result.stdout)


def test_facts_and_a_place_are_one_too_many(image, tmp_path):
    assert isinstance(raised(image, "--facts", CLUSTER, "--ssh-config", str(tmp_path / "c")), BadInput)


class Place:
    place = "login"

    def __init__(self) -> None:
        self.words: tuple[str, ...] = ()

    def run(self, command: Command) -> Completed:
        self.words = command.words
        return Completed(command, 0, Path(CLUSTER).read_bytes(), b"")

    def close(self) -> None:
        pass


def test_a_node_of_the_partition_is_asked_and_launched_in(sif, monkeypatch):
    place = Place()
    monkeypatch.setattr("toolkit.job.places.open_runner", lambda *_: place)
    result = run(sif, "--host", "login", "--partition", "gpu,long")
    assert place.words == ("sh", "-s", "1", "5", "gpu")
    assert pasted(answered(result.stdout)).endswith("--host login --partition gpu,long -- COMMAND")
    run("--host", "login")
    assert place.words == ("sh", "-s", "1", "5")


@every_row(
    ("words", "said"),
    [
        (["--partition", "gpu", "--facts", CLUSTER], "--partition gpu: cannot be combined with --facts"),
        (["--partition", "a b", "--host", "login"], "--partition 'a b'"),
        (["--account", "train", "--host", "login"], "--account train: possible only with --live"),
    ],
)
def test_a_partition_and_an_account_that_nothing_is_done_with_are_refused(image, words, said):
    error = raised(image, *words)
    assert isinstance(error, BadInput)
    assert error.message.startswith(said)


def test_the_ends_of_much_output_keep_their_line_numbers():
    text = b"".join(b"line %d\n" % n for n in range(1, 1001))
    head, tail, skipped = ends(io.BytesIO(text), 500)
    first = head.count(b"\n") + skipped + 1
    assert tail.split(b"\n")[1] == b"line %d" % (first + 1)
    assert ends(io.BytesIO(text), 1 << 20) == (text, b"", 0)


def test_explain_names_the_cause_and_the_line(tmp_path):
    output = tmp_path / "slurm-1.out"
    output.write_text("hello\n[m2:00527] OPAL ERROR: Unreachable in file ext3x_client.c at line 112\n")
    result = CliRunner().invoke(explain, [str(output)])
    assert result.exit_code == 0
    assert "image-lacks-pmi2" in result.stdout
    assert "line 2" in result.stdout
    found = json.loads(CliRunner().invoke(explain, [str(output), "--json"]).stdout)
    assert found["schema"] == "toolkit.explain/2"


def test_explain_says_so_where_it_knows_nothing():
    result = CliRunner().invoke(explain, ["-"], input="epoch 1\n")
    assert isinstance(result.exception, CheckFailed)
    assert "no line reports a failure" in str(result.exception)


def test_explain_shows_what_looks_like_an_error_where_it_knows_nothing():
    said = "epoch 1\nflux capacitor failed\n"
    assert "flux capacitor failed" in CliRunner().invoke(explain, ["-"], input=said).stdout
    told = json.loads(CliRunner().invoke(explain, ["-", "--json"], input=said).stdout)
    assert (told["root"]["number"], told["root"]["text"]) == (2, "flux capacitor failed")
    assert (told["fault"]["id"], told["findings"], told["unread"]) == ("unknown-error", [], None)


def test_explain_of_no_file(tmp_path):
    result = CliRunner().invoke(explain, [str(tmp_path / "none.out")])
    assert isinstance(result.exception, BadInput)


def test_one_place_at_a_time(tmp_path):
    with pytest.raises(BadInput, match="cannot be combined"):
        open_runner("login", "demo")
    with pytest.raises(BadInput, match="No such file"):
        open_runner("login", None, tmp_path / "config")
    with pytest.raises(BadInput, match="--host"):
        open_runner(None, None, EVIDENCE / "no-slurm.txt")
    assert open_runner(None, None).place == "this machine"


def test_a_host_that_is_not_there_is_missing():
    with pytest.raises(Missing):
        open_runner("127.0.0.1:9", None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("a.out").touch(mode=0o755)
    return Path.cwd()


def test_the_next_command_launches_the_command_of_the_user(sif, folder):
    assert (folder / "a.out").is_file()
    result = run(sif, "--facts", CLUSTER, "--mode", "srun-pmix", "--", "./a.out", "-n", "5 6")
    assert "--host LOGIN_NODE -- ./a.out -n '5 6'" in pasted(answered(result.stdout))


@every_row(
    ("words", "fault"),
    [
        (["nosuch"], "image has no command `nosuch`"),
        (["./none.out"], "./none.out: no such file"),
        (["./a.sh"], "./a.sh is not executable"),
    ],
)
def test_a_command_that_launch_refuses_is_answered_with_no(sif, folder, words, fault):
    (folder / "a.sh").write_text("#!/bin/sh\n")
    result = run(sif, "--facts", CLUSTER, "--", *words)
    assert result.exit_code == 1
    assert answered(result.stdout).startswith(f"No: {fault}"), result.stdout
    verdict = json.loads(run(sif, "--facts", CLUSTER, "--json", "--", *words).stdout)
    assert verdict["chosen"] is None
    assert "program-fails" in [finding["id"] for finding in verdict["findings"]]


@pytest.mark.usefixtures("folder")
def test_a_site_and_a_job_file_are_judged_as_they_are_launched(sif, tmp_path):
    assert run(sif, "--facts", CLUSTER, "--mode", "srun-pmix").exit_code == 0
    foreign = run(sif, "--facts", CLUSTER, "--mode", "srun-pmix", "--site", "juwels")
    assert foreign.exit_code == 1
    assert "pspmix" in " ".join(foreign.stdout.split())
    job = tmp_path / "job.yaml"
    job.write_text("command: [./a.out]\nnodes: 2\nenv: {OMPI_MCA_btl: self}\n")
    broken = run(sif, "--facts", CLUSTER, "--mode", "srun-pmix", "--job", str(job))
    # The result also depends on the image's components, which are unknown in this test.
    assert broken.exit_code == 1
    assert "image.mpi.components" in broken.stdout
    job.write_text("command: [./a.out]\nnodes: 2\n")
    shape = run(sif, "--facts", CLUSTER, "--job", str(job))
    assert f"--job {job}" in pasted(shape.stdout)
    one = run(sif, "--facts", CLUSTER, "--job", str(job), "--nodes", "1").stdout
    assert "--nodes 1 " in pasted(one)


def test_a_site_is_not_judged_by_a_machine_without_its_scheduler(sif, monkeypatch):
    known = load(Path(CLUSTER))
    away = msgspec.structs.replace(known, slurm=None, absent={**known.absent, "slurm": "sinfo: not found"})
    monkeypatch.setattr("toolkit.job.diagnosis.read_or_probe", lambda *_: away)
    error = raised(sif, "--site", "juwels")
    assert error.message.startswith("--site: this machine has no Slurm, so it is not a node of JUWELS")
    assert "--host LOGIN" in error.fix
    monkeypatch.setattr("toolkit.job.diagnosis.read_or_probe", lambda *_: known)
    assert run(sif, "--site", "juwels").stdout.startswith("Yes: ")


@every_row(
    ("words", "said"),
    [
        (["--site", "juwels"], "--site and --job need an IMAGE"),
        (["x.sif", "--site", "juwels", "--live"], "cannot be combined with --live"),
        (["x.sif", "--site", "juwelx"], "did you mean juwels?"),
    ],
)
def test_what_cannot_be_judged_with_a_site_is_refused(words, said):
    error = raised(*words)
    assert isinstance(error, BadInput)
    assert said in error.message
