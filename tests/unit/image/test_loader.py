"""The order in which a library is searched (ld.so(8)), and the configuration that says where."""

import pytest

from tests.unit.image.sifs import elf, sandbox
from toolkit.image.folder import FolderTree
from toolkit.image.loader import Loader, environment

USER = "/app/bin/program"
EVERYWHERE = {f"{folder}/libx.so.1": elf() for folder in ("/rpath", "/given", "/runpath", "/usr/lib")}


def found(root, files, soname="libx.so.1", user=USER, given="/given"):
    tree = FolderTree(sandbox(root, files))
    return Loader(tree, {"LD_LIBRARY_PATH": given}).find(soname, *([user] if user else []))


@pytest.mark.parametrize(
    ("rpath", "runpath", "first"),
    [
        ("/rpath", "", "/rpath"),
        ("", "/runpath", "/given"),
        ("/rpath", "/runpath", "/given"),
        ("", "", "/given"),
    ],
)
def test_rpath_comes_before_the_environment_and_runpath_after_it(tmp_path, rpath, runpath, first):
    files = {**EVERYWHERE, USER: elf(rpath=rpath, runpath=runpath)}
    assert found(tmp_path, files) == f"{first}/libx.so.1"


def test_runpath_comes_before_the_system_and_hides_rpath(tmp_path):
    files = {**EVERYWHERE, USER: elf(rpath="/rpath", runpath="/runpath")}
    assert found(tmp_path, files, given="") == "/runpath/libx.so.1"


def test_what_a_library_needs_is_searched_in_the_rpath_of_its_program_too(tmp_path):
    files = {
        USER: elf(needed=("liba.so",), rpath="/app/lib"),
        "/app/lib/liba.so": elf(needed=("libb.so",)),
        "/app/lib/libb.so": elf(),
    }
    loader = Loader(FolderTree(sandbox(tmp_path, files)), {})
    assert loader.closure(USER) == ({"liba.so": "/app/lib/liba.so", "libb.so": "/app/lib/libb.so"}, True)


def test_a_runpath_is_not_handed_down(tmp_path):
    files = {
        USER: elf(needed=("liba.so",), runpath="/app/lib"),
        "/app/lib/liba.so": elf(needed=("libb.so",)),
        "/app/lib/libb.so": elf(),
    }
    loader = Loader(FolderTree(sandbox(tmp_path, files)), {})
    assert loader.closure(USER)[0]["libb.so"] is None


def test_a_closure_that_is_cut_off_says_so(tmp_path):
    files = {f"/lib/lib{n}.so": elf(needed=(f"lib{n + 1}.so",)) for n in range(9)}
    loader = Loader(FolderTree(sandbox(tmp_path, files)), {})
    assert loader.closure("/lib/lib0.so", most=3)[1] is False
    assert loader.closure("/lib/lib0.so", most=20)[1] is True


def test_an_include_is_relative_to_the_file_that_includes(tmp_path):
    files = {
        "/etc/ld.so.conf": "include ld.so.conf.d/*.conf\n",
        "/etc/ld.so.conf.d/mpi.conf": "/opt/mpi/lib # as RHEL has it\n",
        "/opt/mpi/lib/libx.so.1": elf(),
    }
    assert found(tmp_path, files, user=None) == "/opt/mpi/lib/libx.so.1"


@pytest.mark.parametrize("line", ["include", "include ", "include /etc/ld.so.conf\n" * 4, "hwcap 0 nosegneg"])
def test_configuration_that_leads_nowhere_is_passed_over(tmp_path, line):
    files = {"/etc/ld.so.conf": f"{line}\n/opt/lib\n", "/opt/lib/libx.so.1": elf()}
    assert found(tmp_path, files, user=None) == "/opt/lib/libx.so.1"


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("export PATH=/a\\d:/bin\nexport PATH=/x:$PATH\n", "/x:/a\\d:/bin"),
        ('export PATH=/a\\1\nexport PATH="/x:${PATH}"\n', "/x:/a\\1"),
    ],
)
def test_backslashes_in_a_variable_are_text(tmp_path, script, path):
    tree = FolderTree(sandbox(tmp_path, {"/.singularity.d/env/10-docker.sh": script}))
    assert environment(tree)["PATH"] == path


def test_a_variable_that_doubles_itself_stays_within_bounds(tmp_path):
    script = "export PATH=/x\n" + "export PATH=$PATH:$PATH\n" * 64
    tree = FolderTree(sandbox(tmp_path, {"/.singularity.d/env/10-docker.sh": script}))
    assert len(environment(tree)["PATH"]) < 10_000
