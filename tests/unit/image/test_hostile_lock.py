"""Test that no field of a hostile lock becomes an option, a path or a build instruction."""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.unit.image import hostile
from tests.unit.tables import every_row
from toolkit.cli.image import command
from toolkit.errors import BadInput

EVIL_HOST = "evil.example"


def changeable(tmp_path, monkeypatch):
    """Return a recipe whose lock a test can change, with the cache and the settings in a temporary folder."""
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return Recipe(tmp_path)


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    return changeable(tmp_path, monkeypatch)


class Recipe:
    def __init__(self, folder):
        self.folder, self.name = folder, str(folder / "r.toml")
        (folder / "r.toml").write_bytes(hostile.plain_recipe())
        self.lock = json.loads(hostile.plain())
        self.save()

    def every_file(self):
        yield from self.lock["base"]["packages"]
        for stage in (self.lock["build"], self.lock["run"]):
            for files in stage.values():
                yield from files

    def save(self):
        (self.folder / "r.lock.json").write_text(json.dumps(self.lock))

    def set(self, path, value):
        """Change the field at a path such as ``base.packages[0].sha256``."""
        parts = [int(p) if p.isdigit() else p for p in re.findall(r"\w+", path)]
        self.lock = hostile.changed(self.lock, tuple(parts), value)
        self.save()

    def fill_cache(self):
        """Replace each file of the lock by a small file that is in the cache."""
        for file in self.every_file():
            content = file["file"].encode()
            file["sha256"], file["size"] = hashlib.sha256(content).hexdigest(), len(content)
            path = self.folder / "cache" / "files" / file["sha256"] / file["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.save()

    def program(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def listing(self):
        return {path for path in self.folder.rglob("*") if "cache" not in path.parts}

    def run(self, *words):
        return CliRunner().invoke(command, words, obj={"verbose": False, "quiet": True})


FIELDS = (
    ("base.release", f"--logfile={hostile.MARK}", "the codename of a release"),
    ("build.sources[0].file", f"x\nRUN {hostile.MARK}", "a file name of letters"),
    ("base.packages[3].sha256", f"../../../../../{hostile.MARK}", "64 lower-case hexadecimal digits"),
    ("base.packages[3].sha256", "AB" * 32, "64 lower-case hexadecimal digits"),
    ("base.packages[0].file", f"../../{hostile.MARK}", "a file name of letters"),
    ("base.packages[0].name", f"a,b --{hostile.MARK}", "the name of a Debian package"),
    ("base.packages[0].name", "Dash", "the name of a Debian package"),
    ("base.packages[0].version", "1.0 --x", "the version of a Debian package"),
    ("build.wheels[0].version", "one", "the version of a Python package"),
    ("build.wheels[0].name", "a==1 --hash=sha256:00", "the name of a Python package"),
    ("base.packages[0].size", -1, "a number from 0 to"),
    ("epoch", -1, "a number from 0 to"),
    ("base.name", "debian:bookworm\nRUN x", "a base image such as debian:bookworm"),
    ("base.published", "debian:bookworm-slim", "an image reference with its digest"),
    ("base.packages[0].origin", "http://127.0.0.1:5333/evil_1_all.deb", "or an https:// address"),
    ("base.packages[0].origin", "file:///etc/passwd", "or an https:// address"),
    ("recipe_sha256", "x", "64 lower-case hexadecimal digits"),
    ("solution.chosen[0].version", "1\n2", "a version"),
    ("solution.chosen[0].why", "\x1b[2J", "one line of printable text"),
)


@every_row(("path", "value", "expected"), FIELDS)
def test_a_field_that_breaks_its_grammar_is_named_before_anything_acts_on_it(
    tmp_path, monkeypatch, path, value, expected
):
    recipe = changeable(tmp_path, monkeypatch)
    recipe.set(path, value)
    before = recipe.listing()
    done = recipe.run("render", recipe.name, "-o", "out")
    assert isinstance(done.exception, BadInput), done.output
    message = done.exception.message
    assert message.startswith(f"{recipe.folder}/r.lock.json: {path}: expected ")
    assert expected in message
    assert message.isprintable()
    assert recipe.listing() == before
    assert not (recipe.folder / "cache").exists()


def test_a_release_is_no_option_of_mmdebstrap(recipe):
    recipe.fill_cache()
    precious = recipe.folder / "precious"
    precious.write_text("precious")
    recipe.program("mmdebstrap", 'for word; do case $word in --logfile=*) echo > "${word#*=}";; esac; done')
    recipe.program("dpkg-deb", "echo Package: x")
    recipe.set("base.release", f"--logfile={precious}")
    recipe.run("render", recipe.name, "-o", "out")
    assert precious.read_text() == "precious"


def test_a_file_name_is_no_instruction_of_a_dockerfile(recipe):
    recipe.set("build.sources[0].file", "x\nRUN evil")
    assert "RUN evil" not in recipe.run("render", recipe.name).output


def test_nothing_of_a_package_runs_while_a_folder_is_rendered(recipe):
    recipe.fill_cache()
    for name in ("mmdebstrap", "dpkg-deb", "dpkg", "apt-get", "tar", "sh"):
        recipe.program(name, f'echo "$0" >> {recipe.folder}/started; exit 1')
    done = recipe.run("render", recipe.name, "-o", "out")
    assert not (recipe.folder / "started").exists()
    assert done.exit_code == 0, done.exception
    packages = recipe.lock["base"]["packages"]
    sums = (recipe.folder / "out/base/SHA256SUMS").read_text()
    assert len(list((recipe.folder / "out/base").glob("*.deb"))) == len(packages)
    assert all(package["sha256"] in sums for package in packages)
    assert (recipe.folder / "out/make-base.sh").is_file()
    assert not (recipe.folder / "out/base.tar").exists()


@pytest.fixture
def foreign(recipe):
    recipe.fill_cache()
    recipe.set("base.packages[0].origin", f"https://{EVIL_HOST}/evil_1_all.deb")
    return recipe


@every_row("words", [("render",), ("render", "-o", "out"), ("build",), ("bundle", "-o", "b.tar")])
def test_a_foreign_origin_is_shown_and_refused_before_engine_and_network(foreign, words):
    done = foreign.run(words[0], foreign.name, *words[1:])
    assert isinstance(done.exception, BadInput), done.exception
    assert f"neither your mirror nor your package index: {EVIL_HOST}" in done.exception.message
    assert f"--accept-origin {EVIL_HOST}" in done.exception.fix
    assert any(foreign.lock["base"]["packages"][0]["file"] in line for line in done.exception.detail)
    assert not (foreign.folder / "out").exists()


def test_an_accepted_foreign_origin_is_taken(foreign):
    other = foreign.run("render", foreign.name, "--accept-origin", "other.example")
    assert isinstance(other.exception, BadInput)
    done = foreign.run("render", foreign.name, "-o", "out", "--accept-origin", EVIL_HOST.upper())
    assert done.exit_code == 0, done.exception


def test_a_lock_that_lacks_a_source_archive_is_refused(recipe):
    recipe.set("build.sources[0].name", "other")
    done = recipe.run("render", recipe.name)
    assert isinstance(done.exception, BadInput), done.exception
    assert (
        "steps[0].component: expected the name of an archive in build.sources, found 'mpi4py'"
        in done.exception.message
    )


@every_row("kind", ["FIFO", "folder"])
def test_a_given_lock_that_is_not_a_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "x.lock.json"
    if kind == "FIFO":
        os.mkfifo(path)
    else:
        path.mkdir()
    done = CliRunner().invoke(
        command, ["verify", "x.sif", "--lock", str(path)], obj={"verbose": False, "quiet": True}
    )
    assert isinstance(done.exception, BadInput)
    assert f"--lock {path}: a {kind}, not a regular file" in done.exception.message


@every_row("field", ["title", "unbuildable"])
@every_row("text", ["x\\nRUN evil", "x\\u001b[2J", "x\\u2028RUN evil", "a" * 400])
def test_a_line_of_a_recipe_is_one_printable_line(tmp_path, field, text):
    path = tmp_path / "r.toml"
    plain = hostile.plain_recipe().decode()
    title = 'title = "x"\n' if field == "unbuildable" else ""
    path.write_text(
        re.sub(r"(?m)^title = .*$", f'{title}{field} = "{text}"'.replace("\\", r"\\"), plain, count=1)
    )
    done = CliRunner().invoke(command, ["render", str(path)], obj={"verbose": False, "quiet": True})
    assert isinstance(done.exception, BadInput), done.output
    assert f"{field}: expected one line" in done.exception.message
    assert "RUN evil" not in done.output


def test_the_files_of_a_folder_stay_in_it(recipe):
    recipe.fill_cache()
    before = recipe.listing()
    recipe.run("render", recipe.name, "-o", "out")
    assert {path.relative_to(recipe.folder).parts[0] for path in recipe.listing() - before} == {"out"}
    assert Path("out/Dockerfile").is_file()
