"""Test which wheel is selected for an image's Python."""

import pytest

from tests.unit.tables import every_row
from toolkit.errors import CheckFailed
from toolkit.image.locks.pylock import sdists_of, tags, wheels_of

HASH = "ab" * 32


def package(name, *files, marker="", version="1.0"):
    listed = ", ".join(
        f'{{ url = "https://index.example/{f}", upload-time = 2026-01-02T03:04:05Z, '
        f'hashes = {{ sha256 = "{HASH}" }} }}'
        for f in files
    )
    told = f"marker = {marker!r}\n" if marker else ""
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\n{told}wheels = [{listed}]\n'


def pylock(*packages):
    return ('lock-version = "1.0"\ncreated-by = "test"\n' + "".join(packages)).encode()


def chosen(text, glibc="2.36", architecture="x86_64", python="3.11.2"):
    found = wheels_of(text, python=python, glibc=glibc, architecture=architecture)
    return [file.file for file, _ in found]


WHEELS = (
    "a-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "a-1.0-cp311-cp311-manylinux_2_34_x86_64.whl",
    "a-1.0-cp311-cp311-manylinux_2_17_aarch64.whl",
    "a-1.0-cp312-cp312-manylinux_2_17_x86_64.whl",
)


@every_row(
    ("glibc", "architecture", "number"),
    [("2.36", "x86_64", 1), ("2.31", "x86_64", 0), ("2.36", "aarch64", 2)],
)
def test_the_wheel_is_the_best_that_the_c_library_runs(glibc, architecture, number):
    assert chosen(pylock(package("a", *WHEELS)), glibc, architecture) == [WHEELS[number]]


def test_a_package_that_another_python_needs_is_left_out():
    text = pylock(package("a", "a-1.0-py3-none-any.whl", marker="python_full_version >= '3.12'"))
    assert chosen(text) == []
    assert chosen(text, python="3.13.5") == ["a-1.0-py3-none-any.whl"]


def test_a_file_keeps_hash_and_time_and_not_the_address_of_an_index():
    ((file, date),) = wheels_of(
        pylock(package("a", "a-1.0-py3-none-any.whl")), python="3.11.2", glibc="2.36", architecture="x86_64"
    )
    assert (file.name, file.version, file.sha256) == ("a", "1.0", HASH)
    assert file.origin == "index:3.11"
    assert date == 1767323045


def test_a_package_without_a_source_distribution_is_told():
    with pytest.raises(CheckFailed, match=r"a 1.0 has no source distribution"):
        sdists_of(pylock(package("a", "a-1.0-py3-none-any.whl")), python="3.11.2")


def test_old_names_of_platforms_are_known():
    names = {tag.platform for tag in tags("3.11.2", "2.17", "x86_64")}
    assert {"manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64", "any"} <= names
    assert "manylinux_2_18_x86_64" not in names


def test_a_wheel_of_an_index_that_the_recipe_names_is_fetched_from_its_own_address():
    text = b"""
lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "torch"
version = "2.13.0+cpu"
[[packages.wheels]]
url = "https://wheels.example/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl"
hashes = { sha256 = "ab" }
"""
    known = {"python": "3.11.2", "glibc": "2.36", "architecture": "x86_64"}
    ((own, _),) = wheels_of(text, **known, foreign_hosts=frozenset({"wheels.example"}))
    ((other, _),) = wheels_of(text, **known)
    assert own.origin == "https://wheels.example/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl"
    assert other.origin == "index:3.11"


def test_a_wheel_in_a_folder_of_this_machine_has_the_size_of_its_file(tmp_path):
    wheel = tmp_path / "a-1.0-py3-none-any.whl"
    wheel.write_bytes(b"x" * 42)
    text = pylock(package("a", wheel.name)).replace(
        b"https://index.example/", f"{tmp_path.as_uri()}/".encode()
    )
    ((file, _),) = wheels_of(text, python="3.11.2", glibc="2.36", architecture="x86_64")
    assert file.size == 42
    wheel.unlink()
    ((file, _),) = wheels_of(text, python="3.11.2", glibc="2.36", architecture="x86_64")
    assert file.size == 0
