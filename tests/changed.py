"""Run only the tests that a change can affect: python -m tests.changed [--base REF] [--list].

A changed module affects every test that imports it, directly or through other modules. A changed data file
affects the modules that read it, by the table ``READERS``. A file that is in no table affects all tests.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]

READERS = (
    ("recipes/datasets/", ("toolkit.dataset",)),
    ("recipes/", ("toolkit.knowledge", "toolkit.image", "tests.unit.knowledge.rows")),
    ("slurm/", ("toolkit.launch",)),
    ("containers/cluster/", ("toolkit.cluster",)),
    ("containers/", ("toolkit.image", "toolkit.probe", "toolkit.launch", "toolkit.cluster")),
    ("docs/", ("tests.unit.docs",)),
    ("share/", ("tests.unit.docs",)),
    ("mkdocs.yml", ("tests.unit.docs",)),
    ("README.md", ("tests.unit.docs",)),
    ("CHANGELOG.md", ("tests.unit.docs",)),
    ("CONTRIBUTING.md", ("tests.unit.docs",)),
    ("tests/golden/", ("tests.unit.image", "tests.unit.launch", "tests.unit.test_render")),
    ("tests/evidence/", ("tests.unit",)),
    ("tests/matrix/", ("tests.unit.matrix", "tests.unit.engine")),
    ("tests/courses/", ("tests.unit.courses",)),
    ("scripts/clean.sh", ("tests.unit.test_clean_script",)),
    ("scripts/engine.sh", ("tests.unit.test_engine_script",)),
    ("scripts/requirements.sh", ("tests.unit.test_requirements",)),
)
"""Data files and folders, with the modules that read or test them; the first matching row counts."""

SERVICES = ("cluster", "image", "launch", "probe", "run", "trainers")
"""Packages that use Docker, SSH or Slurm, or run in images. Changes that affect them need the smoke tests."""

NOTHING = (".github/", "CITATION.cff", "LICENSE", ".gitignore", ".pre-commit-config.yaml")
"""Files that no test reads."""


@dataclass(frozen=True, slots=True)
class Reach:
    unit: tuple[str, ...]
    smoke: bool


def changed_files(base: str) -> list[str]:
    """Return the files that changed since the branch left ``base``, including uncommitted and new files."""
    fork = _git("merge-base", "HEAD", base)[0]
    return sorted({*_git("diff", "--name-only", fork), *_git("ls-files", "--others", "--exclude-standard")})


def reach(files: Iterable[str], graph: grimp.ImportGraph) -> Reach:
    modules: set[str] = set()
    for file in files:
        found = modules_of(file, graph)
        if found is None:
            return Reach(("tests/unit",), smoke=True)
        modules |= found
    reached = modules.union(*(graph.find_downstream_modules(module) for module in modules))
    tests = {m for m in reached if m.startswith("tests.unit.") and m.rpartition(".")[2].startswith("test_")}
    services = tuple(f"toolkit.{name}" for name in SERVICES)
    smoke = any(m.startswith((*services, "tests.smoke", "tests.services")) for m in reached)
    # Almost every change reaches these packages, but few of their tests need Docker or Slurm. Therefore run
    # the smoke tests only if the packages themselves change.
    smoke = smoke or any(m.startswith(("toolkit.app", "toolkit.cli", "toolkit.job")) for m in modules)
    return Reach(tuple(sorted(m.replace(".", "/") + ".py" for m in tests)), smoke)


def modules_of(file: str, graph: grimp.ImportGraph) -> set[str] | None:
    """Return the module of a file, or the modules that read a data file; None if unknown."""
    if file.startswith(NOTHING):
        return set()
    if file.endswith(".py") and file.startswith(("toolkit/", "tests/")):
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        # A deleted module is no longer in the graph; the modules that imported it have changed, too.
        return {module} & graph.modules
    for start, readers in READERS:
        if file.startswith(start):
            return _below(readers, graph)
    if file.startswith("tests/"):
        # A data file in a folder of tests affects the tests in this folder.
        folder = file.rpartition("/")[0].replace("/", ".")
        while folder not in graph.modules:
            folder = folder.rpartition(".")[0]
        return _below((folder,), graph)
    return None


def _below(packages: Iterable[str], graph: grimp.ImportGraph) -> set[str]:
    return {m for m in graph.modules if any(m == name or m.startswith(f"{name}.") for name in packages)}


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _upstream() -> str:
    known = _git("for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/main", "refs/heads/main")
    return "origin/main" if "origin/main" in known else "main"


def main() -> int:
    """Run the tests that the change since ``--base`` can affect; return pytest's exit status."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--base", help="branch that the change is compared with [origin/main or main]")
    options.add_argument("--list", action="store_true", help="print the tests, run none")
    chosen = options.parse_args()
    files = changed_files(chosen.base or _upstream())
    found = reach(files, grimp.build_graph("toolkit", "tests", cache_dir=None))
    smoke = "and tests/smoke" if found.smoke else "no test that needs services"
    print(f"{len(files)} changed files reach {len(found.unit)} files of unit tests, {smoke}", flush=True)
    if chosen.list:
        print("\n".join(found.unit))
        return 0
    status = 0
    if found.unit:
        words = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", *found.unit]
        status = subprocess.run(words, cwd=ROOT).returncode
    if found.smoke and status == 0:
        status = subprocess.run(["make", "--no-print-directory", "smoke"], cwd=ROOT).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
