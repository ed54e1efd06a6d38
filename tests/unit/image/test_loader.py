"""Test the loader's search order for a library (ld.so(8)), and the configuration of its folders."""

from tests.unit.image.sifs import elf, index, sandbox
from tests.unit.tables import every_row
from toolkit.image.files.folder import FolderTree
from toolkit.image.loader.loader import Loader

USER = "/app/bin/program"
EVERYWHERE = {f"{folder}/libx.so.1": elf() for folder in ("/rpath", "/given", "/runpath", "/usr/lib")}


def found(root, files, soname="libx.so.1", user=USER, given="/given"):
    tree = FolderTree(sandbox(root, files))
    return Loader(tree, {"LD_LIBRARY_PATH": given}).find(soname, *([user] if user else []))


@every_row(
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
    assert loader.closure("/lib/lib0.so", limit=3)[1] is False
    assert loader.closure("/lib/lib0.so", limit=20)[1] is True


def test_an_include_is_relative_to_the_file_that_includes(tmp_path):
    files = {
        "/etc/ld.so.conf": "include ld.so.conf.d/*.conf\n",
        "/etc/ld.so.conf.d/mpi.conf": "/opt/mpi/lib # as RHEL has it\n",
        "/opt/mpi/lib/libx.so.1": elf(),
    }
    assert found(tmp_path, files, user=None) == "/opt/mpi/lib/libx.so.1"


@every_row("line", ["include", "include ", "include /etc/ld.so.conf\n" * 4, "hwcap 0 nosegneg"])
def test_configuration_that_leads_nowhere_is_passed_over(tmp_path, line):
    files = {"/etc/ld.so.conf": f"{line}\n/opt/lib\n", "/opt/lib/libx.so.1": elf()}
    assert found(tmp_path, files, user=None) == "/opt/lib/libx.so.1"


def test_a_library_of_another_architecture_is_passed_over(tmp_path):
    files = {USER: elf(rpath="/arm:/x86"), "/arm/libx.so.1": elf(machine=183), "/x86/libx.so.1": elf()}
    assert found(tmp_path, files) == "/x86/libx.so.1"


@every_row("lib", ["lib/x86_64-linux-gnu", "lib64"])
def test_lib_stands_for_what_the_distribution_calls_its_folder(tmp_path, lib):
    files = {USER: elf(runpath="/app/${LIB}:$ORIGIN/../$LIB"), f"/app/{lib}/libx.so.1": elf()}
    assert found(tmp_path, files, given="") == f"/app/{lib}/libx.so.1"


def test_a_library_that_is_needed_by_its_path_is_found_there_alone(tmp_path):
    files = {**EVERYWHERE, USER: elf(rpath="/rpath")}
    assert found(tmp_path / "a", files, soname="/runpath/libx.so.1") == "/runpath/libx.so.1"
    assert found(tmp_path / "b", files, soname="/nowhere/libx.so.1") is None


def test_the_index_names_the_library_and_the_systems_folders_come_after_it(tmp_path):
    files = {
        **EVERYWHERE,
        USER: elf(),
        "/usr/bin/env": elf(),
        "/etc/ld.so.cache": index({"libx.so.1": "/runpath/libx.so.1", "liby.so": "/gone/liby.so"}),
        "/usr/lib/liby.so": elf(),
    }
    assert found(tmp_path / "a", files, given="") == "/runpath/libx.so.1"
    assert found(tmp_path / "b", files, given="") != found(tmp_path / "c", files)
    assert found(tmp_path / "d", files, soname="liby.so", given="") == "/usr/lib/liby.so"


def test_musl_searches_its_own_folders_or_those_of_its_file(tmp_path):
    files = {
        "/lib/ld-musl-x86_64.so.1": elf(),
        "/usr/local/lib/libx.so.1": elf(),
        "/own/libx.so.1": elf(),
        USER: elf(),
    }
    assert found(tmp_path / "a", files, given="") == "/usr/local/lib/libx.so.1"
    written = {**files, "/etc/ld-musl-x86_64.path": "/own\n/usr/local/lib\n"}
    assert found(tmp_path / "b", written, given="") == "/own/libx.so.1"


def test_little_is_kept_of_what_was_read(tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.image.loader.loader._CACHE_BYTES", 3000)
    files = {f"/lib/lib{n}.so": elf(text=b"x" * 1000) for n in range(9)}
    loader = Loader(FolderTree(sandbox(tmp_path, files)), {})
    for path in files:
        assert b"x" * 1000 in loader.texts(path)
    assert sum(map(len, loader._texts.values())) <= 3000
    assert sum(pages.held for pages in loader._pages.values()) <= 3000 + 1300  # plus the page in use
    assert len(loader.headers()) == 0
