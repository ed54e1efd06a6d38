"""Test the scripts that a SIF adds to an image, with the shells that images contain."""

import json
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tables import every_row
from tests.unit.thorough import count
from toolkit.image.files.config import started_command
from toolkit.image.files.folder import FolderTree
from toolkit.image.loader.scripts import environment as read_environment
from toolkit.image.sifs import singularityd
from toolkit.image.sifs.ociconfig import OciConfig
from toolkit.image.sifs.pseudo import Node, pseudo_file

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
WORDS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), max_size=4)
SHOW = """import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"""


def shell(name):
    return ["busybox", "sh"] if name == "busybox" else [name]


@pytest.fixture
def show(tmp_path):
    """Return the path of a program that prints its arguments and variables as JSON."""
    import sys

    file = tmp_path / "show"
    file.write_text(f"#!{sys.executable}\n{SHOW}\n")
    file.chmod(0o755)
    return str(file)


def run(tmp_path, config, *words, using="dash", **env):
    script = tmp_path / "runscript"
    script.write_text(singularityd.runscript(config))
    done = subprocess.run(
        [*shell(using), str(script), *words],
        env={"PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)[0] if done.stdout else None


ODD = ("a b", "", "$HOME", "`id`", "\"'\\", "-x", "*", "x}y", "l\nm")

RUNSCRIPTS = [
    (("e", *ODD), ("c d", *ODD), (), ["e", *ODD, "c d", *ODD]),
    (("e",), ("command",), ("-n", "a b"), ["e", "-n", "a b"]),
    ((), ("command",), ("x",), ["x"]),
    ((), (), (), None),
]
"""The entry point's arguments, the command's arguments, the user's arguments, and the expected arguments."""


@every_row("using", SHELLS)
@every_row("no_eval", ["", "1"])
@every_row(
    ("entry", "command", "words", "expected"),
    RUNSCRIPTS,
    ids=["entry point with command", "caller replaces command", "caller without entry point", "nothing"],
)
def test_the_runscript_starts_entry_point_and_command(
    tmp_path, show, using, no_eval, entry, command, words, expected
):
    config = OciConfig(Entrypoint=(show, *entry) if entry else (), Cmd=command)
    called = words if entry or not words else (show, *words)
    assert run(tmp_path, config, *called, using=using, SINGULARITY_NO_EVAL=no_eval) == expected


def test_a_shell_evaluates_the_callers_words_unless_told_not_to(tmp_path, show):
    config = OciConfig(Entrypoint=(show,))
    assert run(tmp_path, config, "$WHO", WHO="me") == ["me"]
    assert run(tmp_path, config, "$WHO", WHO="me", SINGULARITY_NO_EVAL="1") == ["$WHO"]


def test_a_program_relative_to_the_working_directory_is_found(tmp_path, show):
    assert run(tmp_path, OciConfig(Cmd=("./show", "x"), WorkingDir=str(tmp_path))) == ["x"]
    assert run(tmp_path, OciConfig(Entrypoint=("./show",), WorkingDir=str(tmp_path)), "./y") == ["./y"]


def sourced(tmp_path, variables, using, **env):
    script = tmp_path / "env.sh"
    script.write_text(singularityd.environment(variables))
    done = subprocess.run(
        [*shell(using), "-c", f". {script}; env -0"],
        env={"PATH": "/bin:/usr/bin", **env},
        capture_output=True,
        check=True,
    )
    return dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)


@every_row("using", SHELLS)
def test_variables_are_set_as_they_are_and_the_callers_win_but_for_path(tmp_path, using):
    odd = {"A": "x y", "B": "a}b", "C": "$HOME `id` \\ \"q\" 'r'", "D": "l\nm", "E_1": "=="}
    variables = [
        *(f"{name}={value}" for name, value in odd.items()),
        "PATH=/image/bin:/bin:/usr/bin",
        "KEPT=image",
    ]
    found = sourced(tmp_path, variables, using, KEPT="caller", PATH="/usr/bin:/bin")
    assert {name: found[name] for name in odd} == odd
    assert found["KEPT"] == "caller"
    assert found["PATH"] == "/image/bin:/bin:/usr/bin"


def test_what_no_shell_can_set_is_left_out():
    assert singularityd.environment(["a-b=1", "1A=2", "=x", "ok"]) == '#!/bin/sh\nexport ok="${ok:-}"\n'


@settings(max_examples=count(20, 40), deadline=None)
@given(
    words=WORDS.filter(bool),
    value=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
)
def test_any_words_and_any_value_come_through_a_shell(tmp_path_factory, words, value):
    folder = tmp_path_factory.mktemp("shell")
    text = singularityd.runscript(OciConfig(Entrypoint=("printf", "%s\\0"), Cmd=tuple(words)))
    said = subprocess.run(["dash", "-c", text], capture_output=True, check=True).stdout
    assert said.decode() == "".join(f"{word}\0" for word in words)
    assert sourced(folder, [f"V={value}"], "dash").get("V", "") == value


def test_our_own_inspector_reads_them(tmp_path):
    config = OciConfig(Env=("PATH=/opt/bin:/bin", "LANG=C.UTF-8"), Entrypoint=("/start", "a b"), Cmd=("c",))
    root = tmp_path / ".singularity.d"
    for path, content in singularityd.scripts(config).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    tree = FolderTree(tmp_path)
    assert started_command(tree, None)[0] == ("/start", "a b", "c")
    found = read_environment(tree).values
    assert (found["PATH"], found["LANG"]) == ("/opt/bin:/bin", "C.UTF-8")


def test_every_folder_comes_before_what_is_in_it():
    seen = set()
    for node in singularityd.nodes(OciConfig(), {"a": "b"}, "text"):
        parent = node.path.rpartition("/")[0]
        assert not parent or parent in seen
        seen.add(node.path)
    assert {"proc", "sys", "dev", "tmp", "etc/hosts", "etc/hostname", "etc/resolv.conf"} <= seen


def test_labels_of_the_image_stay_and_the_date_is_that_of_the_image():
    found = singularityd.labels(OciConfig(Labels={"a": "b"}), "x:y", "amd64", 0, "size")
    assert found["a"] == "b"
    assert found["org.label-schema.build-date"] == "Thursday_1_January_1970_00:00:00_UTC"
    assert found[singularityd.PACKING] == "size"


def test_a_pseudo_file_points_to_the_content_behind_it():
    text = pseudo_file(
        (
            Node("a b", 0o755),
            Node("a b/f", 0o644, b"one"),
            Node("g", 0o600, b""),
            Node("l", 0o777, target="x"),
        ),
        7,
    )
    lines, data = text.split(b"#\n# START OF DATA - DO NOT MODIFY\n#\n")
    assert data == b"one"
    assert lines.decode().splitlines() == [
        "a\\ b D 7 755 0 0",
        "a\\ b/f R 7 644 0 0 3 0 0",
        "g R 7 600 0 0 0 3 0",
        "l S 7 777 0 0 x",
    ]
