"""Test ``make release`` in a temporary repository: the faults that stop it, and the files that it writes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.built import ROOT, STEM

WHO = {f"GIT_{kind}_{what}": "me@localhost" for kind in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
VERSION = "91.0.0"
SECTION = f"## {VERSION} - 2030-01-02\n\n### Added\n\n- `toolkit x`: it does y.\n"


def git(folder, *words):
    done = subprocess.run(
        ["git", *words], cwd=folder, env=os.environ | WHO, capture_output=True, text=True, check=True
    )
    return done.stdout


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a change")


def release(folder, **env):
    words = [str(folder / "scripts" / "release.sh"), str(Path(sys.executable).parent)]
    return subprocess.run(
        words,
        env=os.environ | WHO | {"DRY": ""} | env,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def refused(folder):
    done = release(folder)
    assert done.returncode == 1, done.stdout
    assert not (folder / "build" / "release").exists()
    return done.stderr


def edit(file, pattern, text):
    old = file.read_text()
    new = re.sub(pattern, lambda _: text, old, count=1, flags=re.MULTILINE)
    assert new != old
    file.write_text(new)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    edit(folder / "toolkit" / "__init__.py", r'^__version__ = ".*"$', f'__version__ = "{VERSION}"')
    edit(folder / "CHANGELOG.md", r"^## ", f"{SECTION}\n## ")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    return folder


def test_what_is_not_ready_is_refused_with_what_to_do(repository):
    changelog = repository / "CHANGELOG.md"
    text = changelog.read_text()
    changelog.write_text(text.replace("- `toolkit x`: it does y.\n", ""))
    assert "changes that are not committed" in refused(repository)
    commit(repository)
    assert f"the section of {VERSION} lists no change" in refused(repository)
    changelog.write_text(text.replace(f"## {VERSION} - ", "## 91.0.1 - "))
    commit(repository)
    assert f"CHANGELOG.md does not describe {VERSION}" in refused(repository)
    changelog.write_text(text)
    commit(repository)
    for tag in (f"v{VERSION}", "v100.0.0"):
        git(repository, "tag", tag)
        assert f"{VERSION} is not newer than the last release, {tag}" in refused(repository)


def test_a_release_writes_its_pages_first_then_builds_tries_and_tags(repository):
    said = refused(repository)
    assert "generated files were out of date and are written now" in said
    page = (repository / "share" / "man" / "man1" / "toolkit.1").read_text()
    assert page.startswith(f'.TH "TOOLKIT" "1" "2030-01-02" "toolkit {VERSION}"')
    commit(repository)

    done = release(repository)
    assert done.returncode == 0, done.stdout + done.stderr
    built = {file.name for file in (repository / "build" / "release").iterdir()}
    assert built == {f"{STEM}-{VERSION}.tar.gz", f"{STEM}-{VERSION}-py3-none-any.whl"}
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "cat-file", "-t", f"v{VERSION}") == "tag\n"
    assert "is not newer than the last release" in release(repository).stderr
