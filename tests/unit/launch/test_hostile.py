"""Test malicious jobs: toolkit refuses a value or passes it unchanged, and runs no other command.

HOSTILE_JOBS=2000 pytest tests/unit/launch/test_hostile.py     tests 2000 jobs, as ``make fuzz`` does
"""

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.launch.examples import ACROSS, CARRIED, CONTAINED, GLOO, MPIRUN, SRUN, job_script
from tests.unit.launch.scripts import given_to, run
from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.cli import launch
from toolkit.errors import BadInput, ToolkitError
from toolkit.launch.request import layers
from toolkit.launch.request.jobyaml import read
from toolkit.launch.request.specify import JobPaths, specify
from toolkit.model.jobfile import JobFile
from toolkit.model.site import Container, Site
from toolkit.scheduler.slurm import header as sbatch_lines

COUNT = int(os.environ.get("HOSTILE_JOBS", count(20, 60)))

_SHARP = st.sampled_from(
    ["$(touch broke)", "`touch broke`", "; touch broke", "\n#SBATCH --wrap=x", "\ntouch broke",
     "' ; touch broke '", '"', "'", "\\", "$HOME", "${IFS}", "*", "~", "!!", "a b", "\r\n", "\x1b[2J", "%j",
     "%", "ü☃", "--x", "-", "=", "\t"]
)  # fmt: skip
text = st.one_of(
    _SHARP,
    st.lists(_SHARP, max_size=3).map("".join),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
)
GOOD = {
    "name": "job", "time": "1-00:00:00", "partition": "gpu", "account": "train", "qos": "high",
    "memory": "16G", "tmp": "200G",
    "memory_per_cpu": "2G", "constraint": "ib&mem", "reservation": "course", "nodelist": "node[1-4]",
    "exclude": "node3", "licenses": "scratch:1", "mail_type": "END", "mail_user": "a@b.org", "array": "0-3",
    "dependency": "afterok:12", "begin": "now+2hours", "gpu": "v100", "gpu_bind": "closest",
    "cpu_bind": "cores", "min_free": "20G",
    "output": "out-%j.log", "error": "err.log", "workdir": "/work/a b", "runtime": "apptainer",
    "wckey": "course", "switches": "1@02:00:00",
}  # fmt: skip


_COUNTS = {"nodes": 3, "ranks_per_node": 3, "cpus_per_rank": 4, "gpus_per_node": 4, "chain": 2}
_NASTY = {
    "nodes": -1,
    "warning": 70000,
    "env": {"A B": "x"},
    "binds": ("/x,y",),
    "sbatch": ("--nodes=9",),
    "modules": ("a;b",),
    "sweep": ("a b=1",),
}
_SWEEPS = [
    ("lr=0.1,$(touch broke)", "n=1..2"),
    ("x.y=\"a,b'; touch broke '\",2,`touch broke`",),
]
"""Arguments of ``--sweep``; the test runs one task of each sweep."""


@st.composite
def jobs(draw):
    """Return a job in which at most one field has a malicious value.

    toolkit would refuse most jobs with more malicious values, and bash would run few scripts.
    """
    words = text.filter(lambda word: "\0" not in word)
    values = {"command": tuple(draw(st.lists(words, min_size=1, max_size=4)))}
    values |= {field: good for field, good in GOOD.items() if draw(st.booleans())}
    values |= {field: draw(st.integers(1, most)) for field, most in _COUNTS.items()}
    values |= {"requeue": draw(st.booleans()), "exclusive": draw(st.booleans()), "warning": 60}
    values |= {"elastic": True, "min_nodes": draw(st.integers(0, 3))} if draw(st.booleans()) else {}
    values["env"] = {draw(st.sampled_from(["V", "W_1", "x"])): draw(words) for _ in range(2)}
    values["binds"] = tuple(draw(st.lists(st.sampled_from(["/data", "/a b:/in:ro", "/q'uote"]), max_size=2)))
    sbatch = ["--hold", "--comment='a b'", "--switches=2"]
    values["sbatch"] = tuple(draw(st.lists(st.sampled_from(sbatch), max_size=1)))
    if "array" in values and draw(st.booleans()):
        values["sweep"] = draw(st.sampled_from(_SWEEPS))
    values["preflight"] = draw(st.booleans())
    if draw(st.integers(0, 4)) == 0:
        wrong = draw(st.sampled_from([*GOOD, *_NASTY]))
        sharp = draw(text)
        values[wrong] = _NASTY.get(wrong) or draw(st.sampled_from([sharp, f"{GOOD.get(wrong)}{sharp}"]))
    return values


_FIELDS = [
    "image",
    "site",
    "job",
    "name",
    "time",
    "partition",
    "account",
    "qos",
    "memory",
    "constraint",
    "reservation",
    "nodelist",
    "exclude",
    "licenses",
    "array",
    "dependency",
    "begin",
    "mail-type",
    "mail-user",
    "output",
    "error",
    "workdir",
    "module",
    "sweep",
    "sbatch",
    "env",
    "env-file",
    "bind",
    "directory",
    "data",
    "nodes",
    "gpus-per-node",
    "warning",
    "chain",
    "mode",
    "strategy",
    "gpu",
    "gpu-bind",
    "cpu-bind",
    "fix",
    "verify-key",
]
OPTIONS = [f"--{name}" for name in _FIELDS]

SITE = Site(
    schema="toolkit.site/1", title="A cluster", directory="$BASE/tool kit", scratch="$LOCAL",
    container=Container(binds=("$BASE:/base",)), keep=("OMPI_*",),
)  # fmt: skip


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    values=jobs(),
    plan=st.sampled_from([SRUN, GLOO, CARRIED, MPIRUN, CONTAINED, ACROSS]),
    image=text,
    why=text,
    site=st.booleans(),
)
@example(
    values={"command": ("\n",), "env": {"V": "\n"}}, plan=SRUN, image="a'b", why="\n#SBATCH --x", site=True
)
@example(values={"command": ("$BASE/tool kit",)}, plan=SRUN, image="x", why="", site=False)
@example(values={"command": ("--", "a b"), "array": "0-3"}, plan=ACROSS, image="a'b", why="", site=True)
@example(values={"command": ("$(touch broke)",), "array": "0-3"}, plan=CARRIED, image="x", why="", site=True)
def test_a_hostile_job_is_refused_or_arrives_as_it_is(tmp_path_factory, values, plan, image, why, site):
    folder = tmp_path_factory.mktemp("job")
    base = "$BASE/tool kit" if site else f"{folder}/tool kit"
    directory, image = f"{base}/runs/1", f"/images/{image}"
    try:
        layer = layers.check_layer(values, "job.yaml", {}, strict=True)
        spec = specify(
            layers.merge([layers.JobLayer("", layers.DEFAULTS), layer]).job, JobPaths(directory, image)
        )
        script = job_script(spec, plan, why, "singularity", SITE if site else None)
    except BadInput as refusal:
        assert "\n" not in refusal.message
        shutil.rmtree(folder)
        return
    lines = script.split("\n")
    comments = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    assert all(line.isprintable() for line in comments)
    wanted = [f"#SBATCH {line}" for line in sbatch_lines(spec, SITE if site else None)]
    assert [x for x in comments if x.startswith("#SBATCH")] == wanted
    (folder / "base").mkdir()
    task = {"SLURM_ARRAY_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": "2"} if spec.array else {}
    ran = run(script, folder, BASE=f"{folder}/base", LOCAL=f"{folder}/local", **task)
    assert ran.status == 0, ran.said
    there = directory.replace("$BASE", f"{folder}/base") + ("/2" if spec.array else "")
    words = next(call for call in reversed(ran.calls) if call[0] in {"srun", "mpirun", "singularity"})
    assert words[-len(spec.command) :] == [
        word.replace("$BASE/tool kit", f"{folder}/base/tool kit") if site else word for word in spec.command
    ]
    assert image in words
    assert f"TOOLKIT_JOB_DIR={there}" in words
    assert not [word for word in words if word.partition("=")[0] in spec.env]
    assert {name: given_to(Path(there), name) for name in spec.env} == spec.env
    for bind in values.get("binds", ()):
        assert bind in words
    assert spec.workdir in words or not spec.workdir
    if site:
        assert {"TMPDIR=" + f"{folder}/local", f"{folder}/base:/base"} <= set(words)
    assert {p.name for p in folder.iterdir()} <= {"bin", "base", "job.sh", "recorded", "tool kit"}
    brought = {"toolkit-gloo.py"} if plan is CARRIED else {"toolkit-mpirun.sh"} if plan is ACROSS else set()
    brought |= {"variables.sh"} if spec.env or spec.sweep else set()
    brought |= {"sweep.sh"} if spec.sweep else set()
    kept = {p.name for p in Path(there).iterdir()}
    assert brought <= kept <= {"exit-code", "start-times", "job.sh", "2", *brought}
    shutil.rmtree(folder)


@settings(max_examples=COUNT, deadline=None)
@given(
    content=st.one_of(
        text, st.lists(st.sampled_from("abc:-[]{},&*!|>'\"%#\n \t?~1."), max_size=40).map("".join)
    )
)
@example(content="env:\n  A: [1]\n")
@example(content="a: &x [*x]")
@example(content="nodes: !!python/object/apply:os.system [touch broke]")
@example(content="[" * 3000)
@example(content="{" * 3000)
@example(content="binds:\n- /a\n-\n")
def test_a_file_is_read_or_refused_with_its_name(content):
    try:
        found = read(content, "job.yaml")
        said = layers.check_layer(found.values, "job.yaml", found.lines, strict=False).fields
    except BadInput as refusal:
        assert refusal.message.startswith("job.yaml")
        assert "\n" not in refusal.message
    else:
        assert isinstance(said, JobFile)


@every_row("field", sorted(GOOD))
def test_no_field_lets_a_line_break_through(field):
    for value in (f"{GOOD[field]}\n", f"{GOOD[field]}\n#SBATCH --wrap=x", "\n", f"{GOOD[field]}\r"):
        with pytest.raises(BadInput, match=field):
            layers.check_layer({field: value}, "job.yaml", {}, strict=True)
    layers.check_layer({field: GOOD[field]}, "job.yaml", {}, strict=True)


def test_every_text_of_a_job_is_tried_here():
    texts = {f.name for f in msgspec.structs.fields(JobFile) if f.type == str | None}
    elsewhere = {"trainer", "image", "env_image", "site", "data", "directory", "env_file"}
    assert texts - elsewhere == set(GOOD)


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    options=st.lists(st.tuples(st.sampled_from(OPTIONS), text.filter(lambda t: "\0" not in t)), max_size=3),
    trainer=st.one_of(st.just("mnist"), st.none(), text),
    words=st.one_of(st.just(["--", "true"]), st.just([]), st.lists(text, max_size=3)),
)
@example(options=[("--env", "=x")], trainer="mnist", words=[])
@example(options=[("--image", "docker://x")], trainer=None, words=["--", "x"])
@example(options=[("--image", "~nobody-here/x.sif")], trainer="mnist", words=["--", "true"])
@example(options=[("--site", "../../etc/passwd")], trainer="mnist", words=[])
@example(options=[("--job", "\x1b[2J.yaml")], trainer=None, words=[])
def test_no_words_on_the_command_line_end_in_a_traceback(tmp_path_factory, options, trainer, words):
    given = [word for pair in options for word in pair]
    site = [] if "--site" in given else ["--site", "virtual"]
    call = ["--dry-run", *site, *given, *([trainer] if trainer is not None else []), *words]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.getbasetemp())
        patch.setattr(shutil, "which", lambda _: None)
        done = CliRunner().invoke(launch.command, call, obj={"verbose": False, "quiet": True})
    if isinstance(done.exception, ToolkitError):
        assert done.exception.code in {2, 3}
    else:
        assert done.exit_code in {0, 2}, done.exception
