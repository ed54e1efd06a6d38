"""``toolkit doctor --ask``: answers from a ticket in TOML."""

import json

from click.testing import CliRunner

from toolkit.cli.doctor import command as doctor
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
    assert "if Slurm serves PMIx" in said.output or "if the image has PMIx" in said.output
    assert "srun --mpi=list" in said.output


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


def test_an_image_is_refused(tmp_path):
    said = run(tmp_path, TICKET, "my.sif")
    assert isinstance(said.exception, BadInput)
