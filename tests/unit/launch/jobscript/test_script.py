"""Test the job script: golden files for review, and hostile values that must not run as commands."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.launch.examples import BIND, CARRIED, GLOO, SPEC, SRUN, job_script, spec
from tests.unit.launch.scripts import CASES, GOLDEN, RELAY, given_to, made, relay, run
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.data import shipped_folder
from toolkit.errors import BadInput
from toolkit.launch.jobscript.script import PREFLIGHT, as_name, check_names
from toolkit.launch.jobscript.wrapper import gloo_program

# Ordinary and malicious values without NUL, because an argument cannot contain NUL.
hostile = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=30)


@every_row("name", CASES)
def test_script_is_the_golden_one(name):
    assert made(name) == (GOLDEN / name).read_text()


@every_row("name", CASES)
def test_a_shell_takes_the_golden_script(name):
    subprocess.run(["bash", "-n", GOLDEN / name], check=True)


def test_golden_scripts_are_clean_shell():
    assert relay() == (GOLDEN / RELAY).read_text()
    files = [GOLDEN / name for name in (*CASES, RELAY)]
    subprocess.run([shutil.which("shellcheck") or "shellcheck", *files], check=True)


def test_a_job_that_was_submitted_without_its_environment_hands_it_to_its_ranks(tmp_path: Path):
    # sbatch --export=NONE sets this variable. srun would then have no PATH and not find the container
    # runtime.
    ran = run(job_script(spec(directory=f"{tmp_path}/run"), SRUN, "x"), tmp_path, SLURM_EXPORT_ENV="NONE")
    assert "srun exports all" in ran.said
    assert "NONE" not in ran.said


@settings(max_examples=count(20, 60), deadline=None)
@given(words=st.lists(hostile, min_size=1, max_size=4), because=hostile, value=hostile)
@example(
    words=["$(touch broke)", "`touch broke`", "a b", "'\"", "\n#SBATCH --x"],
    because="\nrm -rf x",
    value="$HOME",
)
@example(words=["ünïcode ☃", "-n", "*", "~", "!!"], because="x\\", value="';touch broke;'")
def test_hostile_words_arrive_as_they_are(tmp_path_factory, words, because, value):
    folder = tmp_path_factory.mktemp("job")
    image = f"/images/{words[0].replace('/', '_')}.sif"
    directory = f"{folder}/runs/'a b'"
    case = spec(
        command=tuple(words), image=image, env={"V": value}, preflight=False, nodes=1, directory=directory
    )
    ran = run(job_script(case, SRUN, because), folder)
    assert ran.status == 0, ran.said
    (got,) = ran.calls
    assert got[-len(words) :] == words
    assert image in got
    assert not any(word.startswith("V=") for word in got)
    assert given_to(Path(directory), "V") == value
    assert sorted(p.name for p in folder.iterdir()) == ["bin", "job.sh", "recorded", "runs"]
    assert sorted(p.name for p in Path(directory).iterdir()) == [
        "exit-code",
        "start-times",
        "variables.sh",
    ]


@every_row("name", ["a b", "a\n#SBATCH --x", "$(id)", "", "-x", "ä", "a;b", "'"])
def test_a_name_that_slurm_could_read_otherwise_is_refused(name):
    with pytest.raises(BadInput, match="--name"):
        job_script(spec(name=name), SRUN, "why")
    with pytest.raises(BadInput, match="--partition"):
        job_script(spec(partition=name), SRUN, "why")


@given(text=st.text(max_size=200))
@example("./a b")
@example("..")
@example("-x")
@example("ünï")
def test_any_word_makes_a_name_that_slurm_takes(text):
    check_names(name=as_name(text))


def test_a_word_that_is_a_name_stays():
    assert as_name("train.py") == "train.py"
    assert as_name("a b") == "a-b"
    assert as_name("é") == "job"


def test_the_script_asks_for_the_runtime_that_it_calls():
    made = job_script(SPEC, SRUN, "why", "apptainer")
    assert "command -v apptainer" in made
    assert "singularity" not in made


@every_row("plan", [GLOO, BIND])
def test_the_preflight_is_launched_as_the_training_is(plan):
    script = job_script(SPEC, plan, "why")
    before, after = script.split("timeout --foreground")[1].split("\nsrun")
    check, training = (
        shlex.split(part.replace("\\\n", " ")) for part in (before.split("status=")[0], f"srun{after}")
    )
    outer = training.index(SPEC.image) + 1
    common = ["env", f"TOOLKIT_JOB_DIR={SPEC.directory}", *(f"{k}={v}" for k, v in plan.env.items())]
    assert training[outer:] == [*common, *plan.wrapper, *SPEC.command]
    check = check[check.index("srun") :]
    assert check == [*training[:outer], *common, *plan.wrapper, *PREFLIGHT, "--tasks", "${SLURM_NTASKS:-2}"]


def test_a_job_brings_what_wires_up_an_image_that_is_not_ours(tmp_path):
    script = job_script(spec(directory=f"{tmp_path}/a 'b'", preflight=False), CARRIED, "why")
    subprocess.run([shutil.which("shellcheck") or "shellcheck", "-"], input=script, text=True, check=True)
    (words,) = run(script, tmp_path).calls
    carried = tmp_path / "a 'b'" / "toolkit-gloo.py"
    assert carried.read_bytes() == gloo_program().encode()
    assert words[words.index("python3") :] == ["python3", str(carried), "--", *SPEC.command]


def test_a_job_for_an_image_of_ours_brings_nothing():
    assert "printf" not in job_script(SPEC, GLOO, "why")


def test_a_second_run_of_the_script_does_not_keep_the_status_of_the_first(tmp_path):
    (tmp_path / "exit-code").write_text("0\n")
    script = job_script(spec(preflight=False, directory=str(tmp_path)), SRUN, "why")
    script = script.replace("srun --nodes", "ls > seen; srun --nodes")
    run(script, tmp_path)
    assert "exit-code" not in (tmp_path / "seen").read_text().split()
    assert (tmp_path / "exit-code").read_text() == "0\n"


def test_what_a_module_left_running_is_no_signal_that_ended_the_script(tmp_path):
    script = job_script(spec(preflight=False, directory=str(tmp_path)), SRUN, "why")
    run(script.replace("srun --nodes", "sleep 1 > /dev/null 2>&1 & srun --nodes"), tmp_path)
    assert (tmp_path / "exit-code").read_text() == "0\n"


@every_row("time", ["", "soon", "1:2:3:4", "1h", "10\n"])
def test_a_time_that_sbatch_would_not_take_is_refused(time):
    with pytest.raises(BadInput, match="--time"):
        job_script(spec(time=time), SRUN, "why")


@every_row("time", ["10", "10:00", "01:00:00", "2-00", "2-12:30", "2-12:30:00"])
def test_slurms_own_forms_of_time_are_taken(time):
    assert f"#SBATCH --time={time}\n" in job_script(spec(time=time), SRUN, "why")


def test_no_rank_no_job():
    with pytest.raises(BadInput, match="--nodes 0"):
        job_script(spec(nodes=0), SRUN, "why")
    with pytest.raises(BadInput, match="--ranks-per-node 0"):
        job_script(spec(ranks_per_node=0), SRUN, "why")


def test_no_command_no_job():
    with pytest.raises(BadInput, match="command is missing"):
        job_script(spec(command=()), SRUN, "why")


def test_a_nul_byte_is_refused():
    with pytest.raises(BadInput, match="NUL"):
        job_script(spec(command=("a\0b",)), SRUN, "why")


def test_every_value_in_shell_templates_is_quoted_or_checked():
    """Each ``{{ }}`` has the filter ``sh``, or an entry in ``checked`` with a reason for no filter."""
    checked = {
        "version",  # toolkit's version
        "variables", "variables_end", "variables_file",  # quoted by variables.script_of in a here-document
        "sweep_file", "loop.index0",  # a constant and a number; sweep.lines quotes each line
        "secrets_file", 'secrets | join(", ")',  # a constant; names that variables.names_of has checked
        "mode",  # an item of a fixed list
        "because", "note",  # script._comment makes each a comment of one line
        "line",  # constants, and header values that checks.check_spec has checked
        "spec.nodes", "spec.ranks", "spec.cpus_per_rank", "spec.warning", "restarts",  # numbers
            "spec.ranks_per_node", "spec.least_nodes", "node_count",  # numbers, or a variable
        "preflight_seconds", "preflight_of", "gpu_seconds",  # constants
        "preflight", "launch", "folder", "definition",  # render.quoted_around quotes each word
        "runtime",  # a constant or a checked value of a site profile, in comments
        "image_start",  # each word is quoted; no user sets the value
        "image_words | sh_words",
        "broadcast_start", "broadcast_folder",  # each word is quoted; a folder of the site
        "broadcast_most", "name", "sha", "size",  # numbers and names that toolkit sets
        "words | sh_words", "foreign.names | sh_words",
        "prefix", "foreign.options",  # constants of toolkit
        "ranks_nodes", "ranks_job", "ranks_address", "ranks_lines", "ranks_file",  # constants of toolkit
        "ranks_per_node", "ranks_ports", "16 * ranks_ports", "ranks_ports - 1",  # numbers
        'foreign.kept | join(" | ")',  # constants and checked values of a site profile
    }  # fmt: skip
    files = [
        f
        for f in shipped_folder("slurm").rglob("*.j2")
        if f.name.startswith("job.") or f.parent.name == "parts"
    ]
    assert len(files) >= 6
    for file in files:
        used = [part.split("}}")[0].strip() for part in file.read_text().split("{{")[1:]]
        unquoted = [name for name in used if name not in checked and not name.endswith("| sh")]
        assert (file.name, unquoted) == (file.name, [])


def test_spec_counts_its_ranks():
    assert SPEC.ranks == 2
