"""Test that a job script launches the plan that the engine judged: the test parses the script.

LAUNCHES=2000 pytest tests/unit/launch/test_launched.py     tests 2000 launches, as ``make fuzz`` does
"""

import os
import shlex
from itertools import pairwise, takewhile

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.matrix.record import load
from tests.unit.engine.examples import HOST, IMAGE, with_
from tests.unit.launch.examples import SPEC
from tests.unit.thorough import count
from toolkit.engine.planning.plan import plan
from toolkit.engine.predict import predict, predict_plan
from toolkit.knowledge import sites
from toolkit.launch.jobscript.script import job_script
from toolkit.launch.request.specify import request_of
from toolkit.model.fix import LaunchFix
from toolkit.model.prediction import MODES, Plan, Request
from toolkit.model.site import Container, Launch, Site

COUNT = int(os.environ.get("LAUNCHES", count(80, 200)))
_TRUTH = load()
_SHIPPED = [site for name in sites.names() if (site := sites.site(name)).scheduler == "slurm"]
_COUNTED = ("--nodes=", "--ntasks=", "--ntasks-per-node=", "--kill-on-bad-exit=", "--label", "-n")
"""Options of ``srun`` and ``mpirun`` that a plan does not contain, such as the number of ranks."""

_names = st.sampled_from(["OMPI_MCA_btl", "UCX_TLS", "TMPDIR", "OMP_NUM_THREADS", "LD_LIBRARY_PATH", "A"])
_values = st.sampled_from(["self", "tcp,self", "/opt/a b", "1", "", "it's"])
_env = st.dictionaries(_names, _values, max_size=2)
_binds = st.lists(st.sampled_from(["/data", "/a b:/in:ro", "/tmp", "/scratch:/tmp"]), max_size=2).map(tuple)
_options = st.fixed_dictionaries(
    {
        "nodes": st.integers(1, 3),
        "ranks_per_node": st.integers(1, 3),
        "cpus_per_rank": st.sampled_from([None, 1, 8]),
        "gpus_per_node": st.sampled_from([None, 0, 2]),
        "cpu_bind": st.sampled_from(["", "sockets"]),
        "gpu_bind": st.sampled_from(["", "closest"]),
        "workdir": st.sampled_from(["", "/data/a b"]),
        "env": _env,
        "binds": _binds,
    }
)
_made_up = st.builds(
    lambda **more: Site(schema="toolkit.site/1", title="A site", **more),
    env=_env,
    keep=st.sampled_from([(), ("OMPI_*",), ("*",)]),
    scratch=st.sampled_from(["", "/local"]),
    network=st.sampled_from(["", "ib0"]),
    fabric=st.sampled_from(["", "Ethernet"]),
    container=st.builds(Container, binds=_binds),
    launch=st.builds(
        Launch,
        mpi=st.sampled_from(["", "pmix", "pmi2", "pspmix"]),
        srun=st.sampled_from([(), ("--cpu-bind=rank",), ("--distribution=block", "--mem-bind=local")]),
    ),
)
_fixes = st.builds(
    LaunchFix,
    mode=st.sampled_from(MODES),
    container=st.sampled_from([(), ("--sharens",), ("--cleanenv",)]),
    env=_env,
    unset=st.sampled_from([(), ("UCX_TLS",)]),
    binds=_binds,
)
_shared = st.sampled_from(["OMPI_MCA_btl", "APPTAINERENV_LD_LIBRARY_PATH", "UCX_TLS", "LD_PRELOAD"])


@st.composite
def _hosts(draw):
    host = draw(st.sampled_from([*_TRUTH.hosts.values(), HOST]))
    inherited = draw(st.dictionaries(_shared, _values, max_size=2))
    return msgspec.structs.replace(host, environment={**host.environment, **inherited})


def taken_apart(script: str, made: Plan, image: str) -> Plan:
    """Return the plan that the script's launch line shows, with the mode of ``made``."""
    starts = ("bash ", "env ", "singularity ") if made.inside else (f"{made.launcher[0]} ",)
    lines = script.replace(" \\\n", " ").split("\n")
    words = shlex.split(next(line for line in reversed(lines) if line.startswith(starts)).removesuffix("&"))
    before, after = words[: words.index(image)], words[words.index(image) + 1 :]
    runtime = before.index("singularity")
    outer, container = before[:runtime], before[runtime + 2 :]
    launcher, _, dropped = _parted(outer, "env")
    if made.inside:
        launcher, _, after = _parted(after, "env")
        launcher = [word for word in launcher if word != "--"]
    else:
        _, _, after = _parted(after, "env")
    pairs = [word.partition("=") for word in takewhile(lambda word: "=" in word, after)]
    binds = [word for option, word in pairwise(container) if option == "--bind"]
    options = [word for option, word in pairwise(("", *container)) if "--bind" not in {option, word}]
    return Plan(
        mode=made.mode,
        launcher=tuple(_uncounted(launcher)),
        inside=made.inside,
        container=tuple(options),
        env={name: value for name, _, value in pairs},
        unset=tuple(word for option, word in pairwise(dropped) if option == "-u"),
        binds=tuple(binds),
        wrapper=made.wrapper,
        program=made.program,
        starter=made.starter,
    )


def _parted(words: list[str], word: str) -> tuple[list[str], str, list[str]]:
    cut = words.index(word) if word in words else len(words)
    return words[:cut], word, words[cut + 1 :]


def _uncounted(words: list[str]) -> list[str]:
    kept, skip = [], False
    for word in words:
        if not skip and not word.startswith(_COUNTED):
            kept.append(word)
        skip = not skip and word == "-n"
    return kept


@settings(max_examples=COUNT, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    host=_hosts(),
    image=st.sampled_from([*(i.facts for i in _TRUTH.images.values()), IMAGE]),
    site=st.none() | st.sampled_from(_SHIPPED) | _made_up,
    fix=st.none() | _fixes,
    mode=st.sampled_from(MODES),
    options=_options,
)
def test_every_word_of_a_script_is_in_the_plan_that_was_judged(host, image, site, fix, mode, options):
    spec = msgspec.structs.replace(SPEC, **{**options, "env": {}}, command=("./a.out",), preflight=False)
    request = request_of(spec, options["env"], mode, site)
    judged = plan(host, image, request, mode, site, fix)
    script = job_script(spec, judged, "why", site=site, image=image)
    shown = taken_apart(script, judged, spec.image)
    assert shown == judged
    assert predict_plan(host, image, request, shown) == predict_plan(host, image, request, judged)


SITE = Site(schema="toolkit.site/1", title="A site")
PLACE, DEBIAN = _TRUTH.hosts["pmix"], _TRUTH.images["source-openmpi-4.1.4-plugins"].facts


def test_a_site_never_launches_another_interface_than_the_mode_names():
    for name in sites.names():
        site = sites.site(name)
        if site.launch.launcher == "srun":
            assert plan(HOST, IMAGE, Request(), "srun-pmi2", site).launcher[1] == "--mpi=pmi2", name
            pmix = plan(HOST, IMAGE, Request(), "srun-pmix", site).launcher[1]
            assert pmix == f"--mpi={site.launch.mpi or 'pmix'}", name


def test_a_variable_of_the_site_is_judged_as_one_of_the_user():
    bad = {"OMPI_MCA_btl": "self"}
    by_user = predict(PLACE, DEBIAN, Request(env=bad)).of("srun-pmix")
    by_site = predict(PLACE, DEBIAN, Request(), with_(SITE, env=bad)).of("srun-pmix")
    assert by_user.outcome == by_site.outcome == "init-failure"


def test_a_variable_of_the_host_that_the_site_keeps_is_judged():
    host = with_(PLACE, environment={"OMPI_MCA_btl": "self,openib"})
    assert predict(host, DEBIAN, Request()).of("srun-pmix").outcome == "ok"
    kept = predict(host, DEBIAN, Request(), with_(SITE, keep=("OMPI_*",))).of("srun-pmix")
    assert kept.outcome != "ok"
    assert "OMPI_MCA_btl" not in kept.plan.unset
