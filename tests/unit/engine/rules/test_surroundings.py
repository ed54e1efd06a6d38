"""Test the rules about files and variables of the host that reach the container."""

import msgspec

from tests.unit.engine.whole import HOST, IMAGE, SLURM, absent, case, host, image, unread
from toolkit.engine.judge import judge
from toolkit.engine.registry import RULES

SCRATCH = host(tmpdir="/scratch/-/tmp")
SPOOL = image(pmix_components={"psec": ("native",), "gds": ("ds12", "ds21", "hash")})
MUNGE = image(pmix_components={"psec": ("munge", "none"), "gds": ("hash",)})


def slurm(**settings: str):
    return host(slurm=msgspec.structs.replace(SLURM, settings={**SLURM.settings, **settings}))


def server_4(**settings: str):
    return msgspec.structs.replace(slurm(**settings), pmix="4.2.2")


FIRES = {
    "tmpdir-not-in-container": [case(SCRATCH), case(SCRATCH, binds=("/scratch:/data",))],
    "tmpdir-not-usable": [case(host(tmpdir="/tmp/job", tmpdir_usable=False))],
    "slurm-tmp-not-mounted": [
        case(slurm(TmpFS="/local/scratch")),
        case(slurm(PMIxCliTmpDirBase="/local/pmix")),
    ],
    "pmix-folder-not-mounted": [case(server_4(), SPOOL)],
    "pmix-store-of-early-5": [
        case(host(pmix="5.0.1"), image(pmix="5.0.7")),
        case(of=image(pmix="5.0.0")),
    ],
    "pmix-lacks-native-security": [
        case(of=MUNGE),
        case(of=image(pmix_components={"psec": ("none",)})),
        case(host(munge=False), MUNGE, binds=("/run/munge",)),
    ],
    "preload-leaks": [
        case(host(environment={"LD_PRELOAD": ""})),
        case(host(environment={"LD_PRELOAD": "/usr/lib/libdarshan.so"})),
    ],
    "library-path-forced": [case(host(environment={"SINGULARITYENV_LD_LIBRARY_PATH": ""}))],
    "nodes-differ": [case(host(differs={"glibc": "node[1-2]: 2.36; node3: 2.28"}))],
    "compute-nodes-not-asked": [case(absent(HOST, "compute_nodes"))],
}
QUIET = {
    "tmpdir-not-in-container": [
        case(),
        case(host(tmpdir="/tmp/job-7")),
        case(host(tmpdir="~/tmp")),
        case(SCRATCH, binds=("/scratch",)),
        case(SCRATCH, binds=("/scratch/-/tmp:/scratch/-/tmp:rw",)),
        case(SCRATCH, env={"TMPDIR": "/tmp"}),
        case(SCRATCH, unset=("TMPDIR",)),
    ],
    "tmpdir-not-usable": [
        case(host(tmpdir="/tmp/job", tmpdir_usable=True)),
        case(),
        case(host(tmpdir="/tmp/job", tmpdir_usable=False), unset=("TMPDIR",)),
    ],
    "slurm-tmp-not-mounted": [
        case(),
        case(slurm(TmpFS="/local"), binds=("/local",)),
        case(absent(HOST, "slurm")),
        case(slurm(TmpFS="")),
        case(slurm(PMIxCliTmpDirBase="(null)")),
        case(slurm(TmpFS="/local/scratch", PMIxCliTmpDirBase="/tmp")),
    ],
    "pmix-folder-not-mounted": [
        case(of=SPOOL),
        case(server_4()),
        case(server_4(), SPOOL, binds=("/var/spool/slurmd",)),
        case(server_4(), SPOOL, env={"PMIX_MCA_gds": "hash"}),
        case(absent(host(pmix="4.2.2"), "slurm"), SPOOL),
    ],
    "pmix-store-of-early-5": [
        case(),
        case(host(pmix="5.0.1"), image(pmix="5.0.1")),
        case(host(pmix="5.0.1"), image(pmix="4.2.9")),
        case(host(pmix="5.0.1"), image(pmix="5.0.7"), env={"PMIX_MCA_gds": "hash"}),
    ],
    "pmix-lacks-native-security": [
        case(),
        case(of=MUNGE, binds=("/run/munge",)),
        case(of=image(pmix_components={"gds": ("hash",)})),
    ],
    "preload-leaks": [case(), case(host(environment={"LD_PRELOAD": ""}), unset=("LD_PRELOAD",))],
    "library-path-forced": [case(), case(host(environment={"LD_LIBRARY_PATH": ""}))],
    "nodes-differ": [case()],
    "compute-nodes-not-asked": [case(), case(absent(HOST, "slurm"))],
}
UNDECIDED = {
    "tmpdir-not-in-container": [case(unread(HOST, "tmpdir"))],
    "compute-nodes-not-asked": [case(unread(HOST, "compute_nodes"))],
    "pmix-store-of-early-5": [case(of=unread(IMAGE, "pmix"))],
}


def test_what_surrounds_a_rank_changes_no_outcome():
    rules = tuple(r for r in RULES if r.id in FIRES)
    for odd in (c for cases in FIRES.values() for c in cases):
        assert judge(odd, rules)[0].outcome == "ok"


def test_the_value_of_a_variable_is_shown_only_where_the_probe_told_it():
    rules = tuple(r for r in RULES if r.id == "preload-leaks")
    shown = [judge(c, rules)[1][0].evidence for c in FIRES["preload-leaks"]]
    assert shown == [("host: LD_PRELOAD is set",), ("host: LD_PRELOAD=/usr/lib/libdarshan.so",)]
