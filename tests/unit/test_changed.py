"""Test which tests `make test CHANGED=1` runs."""

import subprocess

import grimp
import pytest

from tests import changed
from tests.unit.tables import every_row

# A change in one of these files or folders can affect every test.
WHOLE = ("toolkit/py.typed", "Makefile", "pyproject.toml", "requirements/", "scripts/", ".ci/", ".gitignore")


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("toolkit", "tests", cache_dir=None)


def test_a_change_in_reports_reaches_their_tests_and_no_services(graph):
    found = changed.reach(["toolkit/report/study/study_page.py"], graph)
    assert "tests/unit/report/test_study.py" in found.unit
    assert "tests/unit/engine/logs/test_explain.py" not in found.unit
    assert not found.smoke


@every_row(
    "file",
    [
        "toolkit/run/remote/ssh.py",
        "toolkit/engine/predict.py",
        "toolkit/cli/launch.py",
        "toolkit/job/submit.py",
        "tests/services/jobs.py",
        "slurm/job.sh.j2",
    ],
)
def test_a_change_that_jobs_depend_on_is_tried_on_a_cluster(graph, file):
    assert changed.reach([file], graph).smoke


def test_a_change_of_knowledge_reaches_what_reads_it(graph):
    found = changed.reach(["recipes/knowledge/signatures.toml"], graph)
    assert "tests/unit/engine/logs/test_explain.py" in found.unit


def test_a_page_reaches_the_tests_of_pages(graph):
    found = changed.reach(["docs/probe.md", "LICENSE"], graph)
    assert "tests/unit/docs/test_commands.py" in found.unit
    assert len(found.unit) < 30
    assert not found.smoke


def test_a_changed_test_reaches_itself_alone(graph):
    assert changed.reach(["tests/unit/test_changed.py"], graph) == changed.Reach(
        ("tests/unit/test_changed.py",), smoke=False
    )


def test_a_file_that_is_in_no_table_reaches_everything(graph):
    assert changed.reach(["new-folder/file"], graph) == changed.Reach(("tests/unit",), smoke=True)


def test_every_reader_that_the_table_names_exists(graph):
    for _, readers in changed.READERS:
        assert set(readers) <= graph.modules


def test_every_file_of_the_repository_has_a_place_in_the_tables(graph):
    files = subprocess.run(["git", "ls-files"], cwd=changed.ROOT, capture_output=True, text=True, check=True)
    unknown = [
        f for f in files.stdout.split() if changed.modules_of(f, graph) is None and not f.startswith(WHOLE)
    ]
    assert not unknown
