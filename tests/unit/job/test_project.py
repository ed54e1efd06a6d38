"""Test which files of a project toolkit copies to the cluster, and in which form."""

import os
import tarfile

import pytest

from tests.unit.image.sifs import squashfs
from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.image.envs.lockfile import LOCK
from toolkit.job.project.collect import collect
from toolkit.job.project.ignore import decision, patterns
from toolkit.job.project.pack import pack

IGNORED = {
    "*.log": "a.log sub/b.log",
    "/build": "build",
    "data/": "data/ sub/data/",
    "doc/*.txt": "doc/a.txt",
    "**/foo": "foo a/foo a/b/foo",
    "a/**/b": "a/b a/x/b a/x/y/b",
    "abc/**": "abc/x abc/x/y",
    "x[0-9].py": "x1.py",
    "x[!0-9].py": "xa.py",
    "\\#keep": "#keep",
    "what?": "whatx",
    "tail  ": "tail",
}
KEPT = {
    "*.log": "a.log.txt log",
    "/build": "sub/build",
    "data/": "data",
    "doc/*.txt": "doc/sub/a.txt sub/doc/a.txt",
    "abc/**": "abc/",
    "x[0-9].py": "xa.py",
    "x[!0-9].py": "x1.py",
    "# comment": "comment",
    "": "a",
    "what?": "what what/x",
    "*.py\n!keep.py": "keep.py",
}


def ignored(text, path):
    return bool(decision(patterns(text), path.rstrip("/"), folder=path.endswith("/")))


@every_row("text", IGNORED)
def test_a_pattern_leaves_out(text):
    assert {path for path in IGNORED[text].split() if not ignored(text, path)} == set()


@every_row("text", KEPT)
def test_a_pattern_does_not_leave_out(text):
    assert {path for path in KEPT[text].split() if ignored(text, path)} == set()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "work"

    def write(**files):
        for name, text in files.items():
            path = root / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return write


def paths(root):
    return [file.path for file in collect(root).files]


def test_both_ignore_files_are_obeyed_and_the_later_one_wins(tree):
    root = tree(train_py="x", data__a_bin="x", data__b_bin="x", sub__old_log="x", sub__new_log="x")
    (root / ".gitignore").write_text("*.bin\n")
    (root / ".toolkitignore").write_text("!a.bin\n")
    (root / "sub" / ".gitignore").write_text("old.log\n")
    assert paths(root) == [
        ".gitignore",
        ".toolkitignore",
        "data/a.bin",
        "sub/.gitignore",
        "sub/new.log",
        "train.py",
    ]


def test_an_environment_file_is_not_called_a_secret(tree):
    root = tree(train_py="x")
    (root / "my.env").write_bytes(squashfs({LOCK: b"{}"}))
    found = collect(root)
    assert [file.path for file in found.files] == ["train.py"]
    assert (found.secrets, found.ignored_paths) == ([], ["my.env"])


def test_what_may_be_secret_stays_unless_toolkitignore_brings_it_back(tree):
    root = tree(train_py="x", key_pem="x", sub__credentials_json="x")
    (root / ".env").write_text("TOKEN=1")
    (root / ".gitignore").write_text("!.env\n")
    found = collect(root)
    assert [file.path for file in found.files] == [".gitignore", "train.py"]
    assert sorted(found.secrets) == [".env", "key.pem", "sub/credentials.json"]
    (root / ".toolkitignore").write_text("!.env\n")
    assert ".env" in paths(root)


def test_repositories_environments_and_images_stay(tree):
    root = tree(train_py="x", big_sif="x")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / ".venv" / "lib").mkdir(parents=True)
    (root / ".venv" / "lib" / "x.py").write_text("x")
    assert paths(root) == ["train.py"]


def test_a_project_that_is_too_large_names_its_largest_files(tree):
    root = tree(train_py="x", data_bin="x" * 3000, more_bin="x" * 2000)
    with pytest.raises(BadInput, match="toolkit copies at most") as error:
        collect(root, size_limit=4000)
    assert [line.split()[-1] for line in error.value.detail[1:]] == ["data.bin", "more.bin", "train.py"]
    assert ".toolkitignore" in error.value.fix


def test_a_link_to_a_file_travels_as_the_file_and_one_to_a_folder_stays(tree, tmp_path):
    root = tree(train_py="x")
    (tmp_path / "far.txt").write_text("far")
    (root / "near.txt").symlink_to(tmp_path / "far.txt")
    (root / "folder").symlink_to(tmp_path)
    found = collect(root)
    assert [file.path for file in found.files] == ["near.txt", "train.py"]
    assert found.skipped_links == ["folder"]


def test_a_link_to_a_folder_of_the_project_travels_as_the_folder_and_a_circle_stays(tree):
    root = tree(data__x_txt="x", sub__net_py="y")
    (root / "sub" / "data").symlink_to("../data")
    (root / "sub" / "up").symlink_to("..")
    (root / "data" / "sub").symlink_to("../sub")
    found = collect(root)
    assert {"sub/data/x.txt", "data/sub/net.py", "data/x.txt", "sub/net.py"} <= {
        file.path for file in found.files
    }
    assert "sub/up" in found.skipped_links
    assert len(found.files) < 10


def test_an_archive_depends_on_the_content_alone(tree):
    root = tree(train_py="print(1)", sub__net_py="x = 1")
    (root / "train.py").chmod(0o755)
    first = pack(collect(root), "work", "/big/projects")
    os.utime(root / "train.py", (1, 1))
    again = pack(collect(root), "work", "/big/projects")
    assert first == again
    assert first.target == f"/big/projects/work-{first.sha256[:12]}.tar"
    with tarfile.open(first.source) as archive:
        assert {one.name: oct(one.mode) for one in archive} == {"sub/net.py": "0o644", "train.py": "0o755"}
    (root / "train.py").write_text("print(2)")
    assert pack(collect(root), "work", "/big/projects").sha256 != first.sha256
