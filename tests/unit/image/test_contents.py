"""Test how toolkit finds commands, modules and shared libraries in an image by name."""

from tests.unit.image.sifs import index, sandbox
from toolkit.image.files.folder import FolderTree
from toolkit.image.software.contents import contents_of
from toolkit.model.facts import ImageFacts

FILES = {
    "/usr/bin/solve": "#!/bin/sh\n",
    "/usr/lib/python3/dist-packages/numpy/__init__.py": "",
    "/opt/own/lib/libown.so.3": "",
    "/etc/ld.so.cache": index({"libc.so.6": "/lib/libc.so.6", "libmpi.so.40": "/usr/lib/libmpi.so.40"}),
}


def offered(folder, files, **environment):
    facts = ImageFacts(path="x", format="sandbox", architecture="x86_64", environment=environment)
    return contents_of(FolderTree(sandbox(folder, files)), facts)


def test_names_are_read_without_paths(tmp_path):
    found = offered(tmp_path, FILES, PATH="/usr/bin", LD_LIBRARY_PATH="/opt/own/lib")
    assert found.commands == {"solve"}
    assert found.modules == {"numpy"}
    assert found.folders == {"/usr/bin"}
    assert found.libraries == {"libc.so.6", "libmpi.so.40", "libown.so.3"}


def test_without_an_index_the_libraries_are_unknown(tmp_path):
    files = {name: content for name, content in FILES.items() if "ld.so" not in name}
    assert offered(tmp_path, files, LD_LIBRARY_PATH="/opt/own/lib").libraries == frozenset()


def test_python_files_and_packages_in_folders_for_applications_are_listed(tmp_path):
    app = {
        "/app/serve.py": "",
        "/app/data/x.csv": "",
        "/workspace/vllm/__init__.py": "",
        "/workspace/vllm/server.py": "",
        "/opt/tool/run.py": "",
        "/opt/tool/lib/deep.py": "",
        "/srv/other.py": "",
    }
    folders = {
        "serve.py": "/app",
        "vllm": "/workspace",
        "server.py": "/workspace/vllm",
        "run.py": "/opt/tool",
    }
    assert offered(tmp_path, {**FILES, **app}).applications == folders
