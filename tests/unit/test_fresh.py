"""Test the age of the knowledge tables: each table has a date, and rows are compared with the package
index.
"""

import datetime as dt

from tests.fresh.index import index, named
from tests.fresh.rows import Package, Table, looked, of_package, of_table, released
from tests.fresh.run import table
from tests.unit.tables import every_row
from toolkit import data
from toolkit.knowledge.components import components
from toolkit.knowledge.stacks import stacks

TODAY = dt.date(2026, 11, 26)
VERSIONED = ("cuda.toml", "runtime.toml", "slurm.toml", "pmix.toml", "mpi.toml", "fabric.toml")


def package(**changes):
    return Package(
        **{"project": "p", "newest": "1.2.0", "looked": TODAY - dt.timedelta(30), "days": 20, **changes}
    )


def test_every_component_from_the_index_says_when_it_was_looked_at():
    from_index = {name for name in components() if any(row.provider == "pypi" for row in stacks().rows(name))}
    inside_others = {"pmix", "ucx"}
    assert {entry.component for entry in looked().package} - {""} == from_index - inside_others


def test_every_table_of_releases_says_when_it_was_looked_at_and_where():
    shipped = {path.name for path in (data.shipped_folder("recipes") / "knowledge").glob("*.toml")}
    entries = {entry.file: entry for entry in looked().table}
    assert set(entries) == set(VERSIONED)
    assert set(entries) <= shipped
    assert all(entry.sources and entry.days > 0 for entry in entries.values())


def test_a_package_has_rows_or_names_its_newest_release():
    assert all(entry.known() for entry in looked().package)


@every_row(
    ("known", "newest", "changes", "state"),
    [
        ("1.2.0", "1.2.0", {}, "current"),
        ("1.2.0", "1.1.9", {}, "current"),
        ("1.2.0", "1.2.1", {}, "old"),
        ("1.2.0", "1.2.1", {"days": 30}, "newer"),
        ("1.2.0", "1.2.1", {"why": "a reason"}, "newer"),
        ("13.2", "13.2.86", {}, "current"),
        ("13.2", "13.3.1", {}, "old"),
        ("1.2.0", "", {}, "current"),
        ("2.9.0", "2.10.0", {}, "old"),
    ],
)
def test_a_row_is_old_if_the_index_had_a_newer_release_for_longer_than_its_limit(
    known, newest, changes, state
):
    assert of_package(package(newest=known, **changes), newest, TODAY).state == state


@every_row(("age", "state"), [(0, "current"), (60, "current"), (61, "old")])
def test_a_table_is_old_after_its_limit(age, state):
    entry = Table(file="cuda.toml", looked=TODAY - dt.timedelta(age), days=60, sources=("a page",))
    assert of_table(entry, TODAY).state == state


def test_the_newest_release_is_a_release():
    files = (
        "p-1.9-py3-none-any.whl",
        "p-1.10.tar.gz",
        "p-2.0rc1-py3-none-any.whl",
        "p.zip.asc",
        "p-1.10.zip",
    )
    assert released(files) == "1.10"
    assert released(("p-2.0rc1-py3-none-any.whl",)) == ""


def test_file_names_are_read_from_the_page_of_an_index():
    page = """<a href="https://x/p-1.0%2Bcpu-py3-none-any.whl#sha256=0" data-requires-python="&gt;=3">p</a>
    <a rel='internal' href='../../files/p-1.0.tar.gz'>p</a>"""
    assert named(page) == ("p-1.0+cpu-py3-none-any.whl", "p-1.0.tar.gz")


def test_the_index_is_the_one_that_pip_asks(monkeypatch, tmp_path):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple/\n")
    for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert index() == "https://mirror.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://other.example/simple")
    assert index() == "https://other.example/simple"


def test_the_table_names_old_rows_and_why_others_stay():
    old = of_package(package(), "1.3.0", TODAY)
    kept = of_package(package(project="q", why="a wheel names it"), "1.3.0", TODAY)
    text = table([old, kept])
    assert "p     1.2.0  1.3.0  30 days ago  20 days  OLD\n" in text
    assert text.endswith("q stays: a wheel names it\n")
