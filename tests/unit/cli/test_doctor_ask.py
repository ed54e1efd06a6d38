"""Test ``toolkit doctor --ask``, which predicts from a ticket: a TOML file with a few facts."""

import json

from click.testing import CliRunner

from tests.unit.terminal import on_a_terminal
from toolkit.cli.doctor.command import command as doctor
from toolkit.engine.conditional import MOST_FACTS
from toolkit.errors import BadInput

TICKET = """
[cluster]
slurm = "23.02"
offers = ["pmi2", "pmix", "pmix_v4"]
runtime = "apptainer 1.2.5"

[image]
mpi = "openmpi 4.1.4"
"""


def ask(*words):
    return CliRunner().invoke(doctor, ["--ask", *words], obj={"verbose": False, "quiet": False})


def run(tmp_path, text, *words):
    file = tmp_path / "ticket.toml"
    file.write_text(text)
    return ask("--facts", str(file), *words)


def test_a_ticket_is_answered_with_conditions_and_commands(tmp_path):
    said = run(tmp_path, TICKET)
    assert said.exit_code == 0, said.output
    assert "srun-pmix         ok?" in said.output
    assert said.output.startswith("Yes, if the image has PMIx 3.2.3: srun-pmix.")
    assert "toolkit image inspect IMAGE" in said.output


def test_the_same_for_programs(tmp_path):
    said = json.loads(run(tmp_path, TICKET, "--json").stdout)
    assert said["schema"] == "toolkit.ask/1"
    assert {mode["mode"]: mode["outcome"] for mode in said["modes"]}["srun-pmix"] == "ok"


def test_one_mode_that_cannot_work_is_a_failed_check(tmp_path):
    said = run(tmp_path, TICKET + '\n[job]\nmode = "srun-none"\n')
    assert said.exit_code == 1


def test_a_wrong_key_is_named_with_the_choices(tmp_path):
    said = run(tmp_path, "[cluster]\nslurmm = '1'\n")
    assert isinstance(said.exception, BadInput)
    assert "choices: slurm" in said.exception.message


def test_without_a_terminal_the_form_of_a_file_is_named():
    said = ask()
    assert isinstance(said.exception, BadInput)
    assert "TICKET.toml" in said.exception.fix


def test_the_questions_on_a_terminal():
    typed = ["24.11", "pmi2 pmix pmix_v5", "docker 27", "apptainer 1.4.5", "", "", "lam 7", "openmpi 5.0.7"]
    said = on_a_terminal(["doctor", "--ask"], "".join(f"{word}\n" for word in [*typed, "many", "2", "4"]))
    text = said.decode().replace("\r\n", "\n")
    assert "'docker 27' is not the name and release of a container runtime" in text
    assert "'lam 7' is not the name and release of an MPI library" in text
    assert "'many' is not a valid integer" in text
    assert text.count("Number of nodes") == 2
    assert "Yes, if " in text
    assert "Traceback" not in text


def test_the_facts_that_decide_are_at_most_three(tmp_path):
    said = json.loads(run(tmp_path, '[image]\nmpi = "mpich 4.1.2"\n', "--json").stdout)
    assert said["chosen"] == "srun-pmi2"
    assert said["ask"] == ["host.slurm.mpi_types"]
    text = run(tmp_path, '[image]\nmpi = "mpich 4.1.2"\n').output
    assert text.startswith("Yes, if srun offers none, pmi2, pmix, pmix_v5")
    assert text.count("\n  host.") + text.count("\n  image.") <= MOST_FACTS


def test_modes_of_other_programs_are_left_out(tmp_path):
    assert "torch" not in run(tmp_path, TICKET).output
    assert run(tmp_path, "[image]\nmpi = 'none'\n").exit_code == 1


def test_an_image_is_refused(tmp_path):
    said = run(tmp_path, TICKET, "my.sif")
    assert isinstance(said.exception, BadInput)


def test_what_is_not_known_is_not_refused(tmp_path):
    said = run(tmp_path, '[image]\nmpi = "none"\n')
    assert said.exit_code == 1
    assert said.output.startswith("Unknown for bind; no other launch mode works on a typical cluster.")
    assert said.output.index("host.mpis: which") < said.output.index("host.slurm.mpi_types: which")
    assert run(tmp_path, "").output.startswith("Yes, if the image has Open MPI 4.1.6 and srun offers")
    one = run(tmp_path, '[job]\nmode = "srun-none"\n')
    assert one.output.startswith("Unknown: the facts that you gave are not enough.")
