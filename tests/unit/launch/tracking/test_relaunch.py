"""Test relaunching a job from its record."""

import hashlib

import msgspec
import pytest

from tests.unit.launch.examples import RECORD, spec
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.launch.request import trainers
from toolkit.launch.tracking.relaunch import check_image, relaunch, replace_folder, trainer_options
from toolkit.run.local import LocalRunner

OLD = "/work/ada/toolkit/runs/mnist-1"
WORDS = trainers.find("mnist").command("/data/mnist", OLD, "horovod", ("--epochs", "3", "--data", "/other"))
TRAINED = spec(
    trainer="mnist",
    command=WORDS,
    binds=(OLD, "/data/mnist:/data/mnist:ro"),
    env={"WHERE": f"{OLD}/tmp", "ELSE": f"{OLD}0"},
    dependency="afterok:3",
    begin="16:00",
    chain=2,
)


def record(**changes):
    return msgspec.structs.replace(RECORD, spec=TRAINED, cluster="demo", **changes)


def test_it_gets_a_folder_of_its_own_and_all_that_named_the_old_one_follows():
    new = relaunch(record())
    assert new.spec.directory == f"/work/ada/toolkit/runs/{new.key}"
    assert new.key != RECORD.key
    assert new.spec.command[5:7] == ("--output", new.spec.directory)
    assert new.spec.binds == (new.spec.directory, "/data/mnist:/data/mnist:ro")
    assert new.spec.env == {"WHERE": f"{new.spec.directory}/tmp", "ELSE": f"{OLD}0"}


def test_all_else_stays_but_when_it_was_to_start():
    new = relaunch(record())
    kept = msgspec.structs.replace(
        new.spec,
        directory=OLD,
        command=WORDS,
        binds=TRAINED.binds,
        env=TRAINED.env,
        dependency="afterok:3",
        begin="16:00",
    )
    assert kept == TRAINED
    assert (new.spec.dependency, new.spec.begin) == ("", "")
    assert (new.mode, new.image_digest, new.cluster) == ("srun-pmix", "sha256:00", "demo")


def test_one_that_goes_on_stays_in_its_folder_under_a_new_key():
    new = relaunch(record(), resume=True)
    assert (new.spec.directory, new.spec.command) == (OLD, WORDS)
    assert new.key != RECORD.key


def test_the_persons_own_arguments_are_told_apart():
    assert relaunch(record()).arguments == ("--epochs", "3", "--data", "/other")
    assert relaunch(RECORD).arguments == RECORD.spec.command


def test_what_the_launch_gave_a_trainer_is_told_apart_from_the_persons_own():
    mine = ("--epochs", "3", "--data", "/other")
    assert trainer_options(TRAINED) == (
        {"--data": "/data/mnist", "--output": OLD, "--strategy": "horovod"},
        mine,
    )
    assert trainer_options(spec()) == ({}, spec().command)
    cut_short = (*WORDS[:3], "--strategy")
    assert trainer_options(spec(trainer="mnist", command=cut_short)) == ({}, ("--strategy",))


@every_row(
    ("text", "expected"),
    [("/a/b", "/n"), ("/a/b/c", "/n/c"), ("/a/b:/x", "/n:/x"), ("--o=/a/b", "--o=/n"), ("/a/bc", "/a/bc")],
)
def test_only_the_folder_itself_is_moved(text, expected):
    assert replace_folder(text, "/a/b", "/n") == expected


def test_an_image_that_is_gone_or_has_changed_is_refused(tmp_path):
    image = tmp_path / "it.sif"
    kept = record(image_digest=f"sha256:{hashlib.sha256(b'image').hexdigest()}")
    kept = msgspec.structs.replace(kept, spec=spec(image=str(image)))
    with pytest.raises(Missing, match="no longer exists"):
        check_image(LocalRunner(), kept)
    image.write_bytes(b"image")
    check_image(LocalRunner(), kept)
    image.write_bytes(b"other")
    with pytest.raises(CheckFailed, match="has changed since the launch of mnist-"):
        check_image(LocalRunner(), kept)
