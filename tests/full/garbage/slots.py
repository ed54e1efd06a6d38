"""List the slots: all options and arguments that name a file, each with a command that uses it."""

from typing import NamedTuple

from tests.full.garbage.kinds import CONTENTS

HERE = "{}"
"""Placeholder in a command that the test replaces by the path of the garbage."""
NOWHERE = ("--host", "nowhere.invalid")
JOB = ("--image", "good.sif", "--", "true")
IMAGE = ("--image", "good.sif")
OVER = ("--over", "good.sif")
ONCE = ("--ranks", "1", "--pattern", "(x)")
RECIPE = "tf2.21-cpu"

CHECKED = frozenset({1, 2})
"""Exit codes of a command that checks a file: 1 for unknown contents, 2 for an unreadable file."""
FILES = frozenset(CONTENTS) | {"name-newline", "name-escape", "name-not-utf-8", "name-shell"}
FOLDERS = frozenset({"folder", "full-folder", "root"})
NEW = frozenset({"missing", "dangling"})
"""Kinds of garbage at whose path a command can write a new file or folder."""
NO_JOB = frozenset({"empty", "bom", "json-null", "json-object"})
"""Kinds of garbage that are valid job files without settings."""
SYSTEM = frozenset({"root"})
"""The folder ``/``, which is a valid sandbox image."""
REPLACED = NEW | FILES | {"/proc/self/mem"}
"""Kinds of garbage that a new image or bundle may replace."""
STREAMS = frozenset({"/dev/null", "/dev/zero", "/dev/full"})
"""Devices that accept output; ``/dev/full`` acts like a full disk."""


class Slot(NamedTuple):
    """A call with garbage for one option or argument that names a file.

    ``valid`` are kinds of garbage with which the command may continue and contact services. ``codes`` are the
    allowed exit codes for all other kinds. With ``writes``, the tests skip the folder ``/``, because root can
    write there.
    """

    command: str
    parameter: str
    words: tuple[str, ...]
    suffix: str = ""
    valid: frozenset[str] = frozenset()
    codes: frozenset[int] = frozenset({2})
    case: str = ""
    writes: bool = False

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.command, self.parameter, self.case)))


def _ssh_config(command: str, *words: str) -> Slot:
    # An empty file is a valid configuration without settings.
    return Slot(
        command, "--ssh-config", ("--ssh-config", HERE, *NOWHERE, *words), valid=frozenset({"empty", "bom"})
    )


_READING = (
    Slot("image show", "recipe", (HERE,), ".toml"),
    Slot("image solve", "recipe", (HERE,), ".toml"),
    Slot("image solve", "--facts", (RECIPE, "--facts", HERE)),
    Slot("image solve", "--site", (RECIPE, "--site", HERE), ".toml"),
    Slot("image render", "recipe", (HERE,), ".toml"),
    Slot("image lock", "recipe", (HERE,), ".toml"),
    Slot("image lock", "--facts", (RECIPE, "--own", "--facts", HERE)),
    Slot("image lock", "--site", (RECIPE, "--own", "--site", HERE), ".toml"),
    Slot("image build", "recipe", (HERE,), ".toml"),
    Slot("image sif", "image", (HERE,), ".toml"),
    Slot("image inspect", "image", (HERE,), valid=SYSTEM),
    Slot("image sbom", "image", (HERE,), valid=SYSTEM),
    Slot("image sign", "file", (HERE, "--key", "nobody@nowhere.invalid"), ".sif"),
    Slot("image verify", "sif", (HERE,), ".sif"),
    Slot("image verify", "--keyring", ("good.sif", "--keyring", HERE)),
    Slot("image verify", "--lock", ("good.sif", "--lock", HERE), ".lock.json"),
    Slot("image push", "image", (HERE, "oras://nowhere.invalid/a/b:1"), case="to a registry"),
    Slot("image push", "image", (HERE, "x/", *NOWHERE, "--facts"), case="with --facts"),
    Slot("image push", "--ca", ("good.sif", "oras://nowhere.invalid/a/b:1", "--ca", HERE)),
    _ssh_config("image push", "good.sif", "x/"),
    Slot("image pull", "--ca", ("oras://nowhere.invalid/a/b:1", "-o", "new.sif", "--ca", HERE)),
    Slot("image bundle", "recipes", (HERE, "-o", "new.tar"), ".toml"),
    Slot("image bundle", "--sif", (RECIPE, "-o", "new.tar", "--sif", HERE), ".sif"),
    Slot("image unbundle", "source", (HERE,), ".tar"),
    Slot("image adopt", "image", (HERE,), valid=SYSTEM),
    Slot("image adopt", "--facts", ("good.sif", "--facts", HERE)),
    Slot("image adopt", "--ca", ("oras://nowhere.invalid/a/b:1", "--ca", HERE)),
    Slot("env create", "--file", ("-f", HERE, "--over", "good.sif", "-o", "new.env"), ".txt", FILES),
    Slot("env create", "--over", ("-f", "facts.txt", "--over", HERE, "-o", "new.env"), ".sif"),
    Slot("env create", "--find-links", ("-f", "facts.txt", *OVER, "-o", "new.env", "--find-links", HERE),
         valid=FOLDERS),
    Slot("env add", "env", (HERE, *OVER)),
    Slot("env remove", "env", (HERE, "rich", *OVER)),
    Slot("env list", "env", (HERE,)),
    Slot("env check", "env", (HERE,)),
    Slot("env check", "--over", ("any.env", "--over", HERE), ".sif"),
    Slot("env diff", "old", (HERE, HERE)),
    Slot("env diff", "new", (HERE, HERE)),
    _ssh_config("probe"),
    _ssh_config("init", "--yes"),
    Slot("doctor", "image", (HERE, *NOWHERE), valid=SYSTEM),
    Slot("doctor", "image", (HERE, *NOWHERE, "--live", "--mode", "srun-pmix"), case="--live"),
    Slot("doctor", "--facts", ("good.sif", "--facts", HERE)),
    Slot("doctor", "--job", ("good.sif", "--facts", "facts.txt", "--job", HERE), ".yaml", NO_JOB),
    _ssh_config("doctor", "good.sif"),
    Slot("explain", "file", (HERE,), codes=CHECKED),
    Slot("adapt", "file", (HERE,), ".py"),
    Slot("launch", "trainer", (HERE, *NOWHERE, *IMAGE), ".yaml", NO_JOB, case="job file"),
    Slot("launch", "trainer", (HERE, *NOWHERE, *IMAGE), ".py", FILES, case="own"),
    Slot("launch", "--image", ("--image", HERE, *NOWHERE, "--", "true"), ".sif"),
    Slot("launch", "--image", ("--image", HERE, "--site", "virtual", "--dry-run", "--", "true"), ".sif",
         frozenset({"missing", "name-300", "name-6000"}), case="for a site"),
    Slot("launch", "--image", ("--image", HERE, "--local", "--", "true"), ".sif", case="--local"),
    Slot("launch", "--site", ("--site", HERE, "--dry-run", *JOB), ".toml"),
    Slot("launch", "--job", ("--job", HERE, *NOWHERE, *IMAGE), ".yaml", NO_JOB),
    Slot("launch", "--fix", ("--fix", HERE, *NOWHERE, *JOB), ".toml"),
    Slot("launch", "--env-image", ("--env-image", HERE, *NOWHERE, *JOB), ".env"),
    Slot("notebook", "--env-image", ("--env-image", HERE, *NOWHERE, *IMAGE), ".env"),
    Slot("scale", "--env-image", (*ONCE, *NOWHERE, "--env-image", HERE, *JOB), ".env"),
    Slot("doctor", "--env-image", ("good.sif", "--facts", "facts.txt", "--env-image", HERE), ".env"),
    Slot("launch", "--verify-key", ("--verify-key", HERE, *NOWHERE, *JOB), ".asc"),
    Slot("launch", "--data", ("mnist", "--data", HERE, *NOWHERE, *IMAGE), "", FOLDERS | NEW),
    Slot("launch", "--project", ("--project", HERE, *NOWHERE, *JOB), "", FOLDERS),
    _ssh_config("launch", *JOB),
    Slot("launch", "--env-file", ("--env-file", HERE, *NOWHERE, *JOB), ".env"),
    Slot("notebook", "--env-file", ("--env-file", HERE, *NOWHERE, *IMAGE), ".env"),
    Slot("notebook", "--verify-key", ("--verify-key", HERE, *NOWHERE, *IMAGE), ".asc"),
    Slot("scale", "--env-file", ("--env-file", HERE, *ONCE, *NOWHERE, *JOB), ".env"),
    Slot("scale", "--verify-key", ("--verify-key", HERE, *ONCE, *NOWHERE, *JOB), ".asc"),
    Slot("doctor", "--verify-key", ("good.sif", "--live", "--verify-key", HERE, *NOWHERE), ".asc"),
    Slot("image render", "--verify-key", (RECIPE, "--verify-key", HERE), ".asc"),
    Slot("image build", "--verify-key", (RECIPE, "--verify-key", HERE), ".asc"),
    Slot("image unbundle", "--verify-key", ("any.tar", "--verify-key", HERE), ".asc"),
    Slot("notebook", "--image", ("--image", HERE, *NOWHERE), ".sif"),
    Slot("notebook", "--image", ("--image", HERE, "--site", "virtual", "--dry-run"), ".sif",
         frozenset({"missing", "name-300", "name-6000"}), case="for a site"),
    Slot("notebook", "--site", ("--site", HERE, "--dry-run", *IMAGE), ".toml"),
    _ssh_config("notebook", *IMAGE),
    Slot("scale", "trainer", (HERE, "--ranks", "1", *NOWHERE, *IMAGE), ".py", FILES),
    Slot("scale", "--image", (*ONCE, *NOWHERE, "--image", HERE, "--", "true"), ".sif"),
    Slot("scale", "--site", (*ONCE, "--site", HERE, *JOB), ".toml"),
    Slot("scale", "--data", ("mnist", "--ranks", "1", "--data", HERE, *NOWHERE, *IMAGE), "", FOLDERS | NEW),
    Slot("scale", "--prove", ("mnist", "--ranks", "2", "--prove", HERE, *NOWHERE, *IMAGE), codes=CHECKED),
    _ssh_config("scale", *ONCE, *JOB),
    Slot("bench start", "--image", ("--image", HERE, *NOWHERE, "--", "true"), ".sif"),
    Slot("bench start", "--env-image", ("--env-image", HERE, *NOWHERE, *JOB), ".env"),
    Slot("bench start", "--data", ("mnist", "--data", HERE, *NOWHERE, *IMAGE, "--"), "", FOLDERS | NEW),
    Slot("bench start", "--env-file", ("--env-file", HERE, *NOWHERE, *JOB), ".env"),
    _ssh_config("bench start", *JOB),
    Slot("report", "jobs", (HERE,)),
    Slot("report", "--timeline", ("--timeline", HERE), codes=CHECKED),
    Slot("site check", "name", (HERE, *NOWHERE), ".toml"),
    Slot("site check", "--facts", ("virtual", "--facts", HERE)),
    Slot("site share", "name", (HERE, "--facts", "facts.txt"), ".toml"),
    Slot("site share", "--facts", ("virtual", "--facts", HERE)),
    _ssh_config("site check", "virtual"),
    _ssh_config("site share", "virtual"),
    Slot("site show", "name", (HERE,), ".toml"),
    Slot("cluster up", "--flavour", ("--flavour", HERE)),
    Slot("data get", "name", (HERE,), ".toml"),
)  # fmt: skip

_WRITING = (
    Slot("env create", "--output", ("-f", "facts.txt", *OVER, "-o", HERE), ".env",
         NEW | {"empty", "/proc/self/mem"}),
    Slot("init", "--output", ("--yes", "-o", HERE), ".toml", NEW),
    Slot("image solve", "--output", (RECIPE, "-o", HERE), "", frozenset({"missing"})),
    Slot("image render", "--output", (RECIPE, "-o", HERE), "", NEW | {"folder"}),
    Slot("image sif", "--output", (RECIPE, "-o", HERE), ".sif", REPLACED),
    Slot("image pull", "--output", ("oras://nowhere.invalid/a/b:1", "-o", HERE), ".sif", REPLACED),
    Slot("image bundle", "--output", (RECIPE, "-o", HERE), ".tar", REPLACED),
    Slot("image adopt", "--output", ("good.sif", "-o", HERE), "", {"missing"} | FOLDERS),
    Slot("probe", "--output", ("-o", HERE), ".json", NEW | STREAMS | {"empty", "fifo", "/proc/self/mem"}),
    Slot("doctor", "--output", ("good.sif", "--facts", "facts.txt", "--fix", "-o", HERE), ".toml", NEW),
    Slot("site share", "--output", ("virtual", "--facts", "facts.txt", "-o", HERE), ".json",
         NEW | STREAMS | {"empty", "fifo", "/proc/self/mem"}),
    Slot("adapt", "--output", ("train.py", "-o", HERE), ".py", {"missing"}),
    Slot("scale", "--study", (*ONCE, *NOWHERE, "--study", HERE, *JOB), "", {"missing"} | FOLDERS),
    Slot("report", "--output", ("run", "-o", HERE), "", {"missing"} | FOLDERS),
    Slot("data get", "--output", ("mnist", "-o", HERE), "", {"missing"} | FOLDERS),
)  # fmt: skip

SLOTS = (*_READING, *(slot._replace(writes=True) for slot in _WRITING))

NO_FILES = frozenset(
    {
        *("--accept-origin", "--replace", "packages"),
        *("--account", "--array", "--attach", "--begin", "--bind", "--cluster", "--compare", "--constraint"),
        *(
            "--cpu-bind",
            "--dependency",
            "--directory",
            "--env",
            "--error",
            "--exclude",
            "--explain",
            "--fetch",
        ),
        *("--folder", "--from-job", "--gpu", "--gpu-bind", "--host", "--key", "--licenses", "--listen"),
        *("--mail-type", "--mail-user", "--memory", "--memory-per-cpu", "--min-free", "--module", "--name"),
        *("--node", "--nodelist", "--nodes", "--output", "--packages", "--partition", "--pattern"),
        *("--platform", "--python", "--qos", "--reservation", "--sbatch", "--since", "--site", "--strong"),
        *("--for", "--sweep", "--switches", "--tmp"),
        *(
            "--tag",
            "--time",
            "--unit",
            "--wckey",
            "--user",
            "--weak",
            "--workdir",
            "job",
            "jobs",
            "patterns",
            "source",
            "target",
        ),
    }
)
"""Options and arguments that take text, but never the name of a file on this machine."""
