"""Test images and data that a cluster shares with all users; this machine acts as the cluster."""

import json

import pytest

from tests.unit.cli.test_launch import Cluster, Told
from tests.unit.image.sifs import DATA, sif
from tests.unit.image.signed import PUBLIC_KEY
from tests.unit.tables import every_row
from toolkit.cli.image.push import command as push_command
from toolkit.cli.image.push import copy
from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import hash_file
from toolkit.job import offline, prepare
from toolkit.job.notebook import merge_notebook
from toolkit.job.notebook import prepare_notebook as notebook
from toolkit.job.request import layering
from toolkit.job.request.flags import Flags
from toolkit.job.request.inputs import OnCluster, image_of
from toolkit.job.sources import check
from toolkit.model.progress import Silent
from toolkit.model.site import Site
from toolkit.run.local import LocalRunner

PROFILE = """\
schema = "toolkit.site/1"
title = "A class"
directory = "/big"
shared = "$PROJECT/course"
[launch]
mode = "srun-pmi2"
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TOOLKIT_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROJECT", str(tmp_path / "project"))
    (tmp_path / "class.toml").write_text(PROFILE)
    shared = tmp_path / "project" / "course"
    (shared / "images").mkdir(parents=True)
    return shared


@pytest.fixture
def image(tmp_path):
    file = tmp_path / "tiny.sif"
    file.write_bytes(sif((DATA / "tiny.gzip").read_bytes()))
    return file


@pytest.fixture
def pushed(image, project):
    copy(LocalRunner(), image, f"{project}/images/", Silent(), facts=True)
    image.unlink()
    return project / "images" / "tiny.sif"


def asked(image, words=("true",), **said):
    return layering.merge_request({"image": str(image), "site": "class.toml", **said}, words)


def prepared(image, words=("true",), *, remote=True, tell=None, **said):
    flags = Flags(force=True, verify_key=said.pop("verify_key", None))
    given = asked(image, words, **said)
    sources = check(given, flags)
    return prepare.prepare(Cluster(), given, flags, sources, tell or Told(), remote=remote)


# An image on this machine and on the cluster


@every_row("name", ["tiny.sif", "tiny-{digest:.12}.sif"])
def test_an_image_that_everybody_has_with_the_same_bytes_is_not_copied(image, project, name):
    there = project / "images" / name.format(digest=hash_file(image))
    there.write_bytes(image.read_bytes())
    tell = Told()
    job = prepared(image, tell=tell)
    assert (job.record.spec.image, job.parcels) == (str(there), ())
    assert job.record.image_digest == f"sha256:{hash_file(image)}"
    assert any(f": {there}" in step and "is already on" in step for step in tell.steps)


def test_one_of_that_name_with_other_bytes_is_left_alone(image, project):
    (project / "images" / "tiny.sif").write_bytes(b"another one")
    job = prepared(image)
    assert [parcel.target for parcel in job.parcels] == [job.record.spec.image]
    assert job.record.spec.image.startswith("/big/images/tiny-")


def test_without_a_folder_for_everybody_the_image_is_copied(image, tmp_path):
    (tmp_path / "class.toml").write_text(PROFILE.replace('shared = "$PROJECT/course"\n', ""))
    assert prepared(image).parcels


def test_a_variable_that_the_cluster_has_not_is_named(image, monkeypatch):
    monkeypatch.delenv("PROJECT")
    with pytest.raises(Missing, match="the variable PROJECT, which"):
        prepared(image)


# An image that is only on the cluster


@every_row("by", ["name", "file", "path"])
def test_an_image_that_is_there_alone_needs_no_copy_here(pushed, by):
    given = {"name": "cluster:tiny", "file": "cluster:tiny.sif", "path": f"cluster:{pushed}"}[by]
    job = prepared(given)
    assert (job.record.spec.image, job.parcels) == (str(pushed), ())
    assert job.record.image_digest == f"sha256:{hash_file(pushed)}"
    assert job.record.image_check.signature == "not-checked"
    assert str(pushed) in job.script


def test_on_the_login_node_itself_it_is_a_file_like_others(pushed):
    job = prepared("cluster:tiny", remote=False)
    assert (job.record.spec.image, job.parcels) == (str(pushed), ())
    assert job.record.image_check.signature == "none"


def test_a_notebook_takes_it_too(pushed):
    asking = merge_notebook({"image": "cluster:tiny", "site": "class.toml"}, "", "", Flags(), Told())
    made = notebook(Cluster(), asking, Told(), remote=True)
    assert (made.record.spec.image, made.parcels) == (str(pushed), ())


@every_row(
    ("given", "said"),
    [
        ("cluster:", "expected an absolute path or a name after `cluster:`"),
        ("cluster:a/b.sif", "expected an absolute path or a name after `cluster:`"),
        ("cluster:/a\nb.sif", "expected an absolute path or a name after `cluster:`"),
        ("cluster:..", "expected an absolute path or a name after `cluster:`"),
        ("cluster:tiny", "the job has no site profile with a shared folder"),
    ],
)
def test_what_names_no_image_there_is_refused(given, said):
    with pytest.raises(BadInput, match=said):
        image_of(given, Site(schema="toolkit.site/1", title="x"))


def test_a_path_there_is_made_plain():
    assert image_of("cluster:/a/./b/../c.sif", None) == OnCluster("/a/c.sif")


def test_an_image_that_is_not_there_ends_in_3(project):
    with pytest.raises(Missing, match=f"{project}/images/nope.sif is not an image that you can read"):
        prepared("cluster:nope")


def test_one_of_which_nothing_is_said_ends_in_3_and_in_what_says_it(pushed):
    pushed.with_name("tiny.sif.facts.json").unlink()
    with pytest.raises(Missing, match="has no facts file") as caught:
        prepared("cluster:tiny")
    assert caught.value.fix.endswith("`toolkit image push tiny.sif --facts`")


def test_what_is_said_of_it_may_be_damaged(pushed):
    (pushed.parent / "tiny.sif.facts.json").write_text("{")
    with pytest.raises(BadInput, match=r"tiny\.sif\.facts\.json"):
        prepared("cluster:tiny")


def test_an_image_that_changed_since_is_not_launched(pushed):
    with pushed.open("ab") as file:
        file.write(b"more")
    with pytest.raises(CheckFailed, match="does not match the digest in"):
        prepared("cluster:tiny")


def test_a_signature_that_is_asked_for_cannot_be_looked_at_from_here(pushed, tmp_path):
    (tmp_path / "key").write_text(PUBLIC_KEY)
    with pytest.raises(CheckFailed, match="its signatures cannot be checked"):
        prepared("cluster:tiny", verify_key=str(tmp_path / "key"))


@every_row("said", [{"image": "cluster:tiny"}, {"image": "mine", "data": "cluster:numbers"}])
def test_a_script_for_a_cluster_that_nobody_asks_cannot_have_it(said):
    given = asked(**said)
    with pytest.raises(BadInput, match="the file is on the cluster"):
        offline.script_for(given, given.site, Flags(), Told())


# Copies of images into the shared folder


def test_what_is_pushed_with_facts_says_nothing_of_the_folder_that_it_came_from(pushed, tmp_path):
    written = (pushed.parent / "tiny.sif.facts.json").read_text()
    told = json.loads(written)
    assert (told["path"], told["digest"]) == ("tiny.sif", f"sha256:{hash_file(pushed)}")
    assert pushed.stat().st_mode & 0o004
    assert (pushed.parent / "tiny.sif.facts.json").stat().st_mode & 0o777 == 0o644


def test_facts_of_what_is_no_image_are_refused_before_it_is_sent(project, tmp_path):
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(BadInput):
        copy(LocalRunner(), tmp_path / "a.txt", f"{project}/images/", Silent(), facts=True)
    assert list((project / "images").iterdir()) == []


def test_facts_do_not_go_to_a_registry(image):
    from click.testing import CliRunner

    words = [str(image), "oras://registry.example/a:1", "--facts"]
    error = CliRunner().invoke(push_command, words, obj={"verbose": False, "quiet": True}).exception
    assert isinstance(error, BadInput)
    assert "--facts" in error.message


# Shared data


@every_row("given", ["cluster:numbers", "cluster:{project}/data/numbers"])
def test_data_that_are_there_alone_need_no_copy_here(image, project, tmp_path, given):
    there = project / "data" / "numbers"
    there.mkdir(parents=True)
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    job = prepared(image, (), trainer="net.py", data=given.format(project=project))
    assert job.record.spec.command[2:4] == ("--data", str(there))
    assert f"{there}:{there}:ro" in job.record.spec.binds
    assert [parcel.source.name for parcel in job.parcels] == ["net.py", "tiny.sif"]


def test_data_that_are_not_there_end_in_3(image, project, tmp_path):
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    with pytest.raises(Missing, match=f"{project}/data/nope is not a folder that you can read"):
        prepared(image, (), trainer="net.py", data="cluster:nope")


@every_row("given", ["cluster:", "cluster:a/b", "cluster:."])
def test_what_names_no_data_there_is_refused(image, tmp_path, given):
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    with pytest.raises(BadInput, match=r"--data .*: expected an absolute path or a name after `cluster:`"):
        prepared(image, (), trainer="net.py", data=given)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "numbers"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.bin", "sub/b.bin"):
        (folder / name).write_text(name)
    (tmp_path / "net.py").write_text("from toolkit.trainers.command import run\nrun(None)\n")
    return folder


@every_row("whole", [True, False])
def test_data_that_everybody_has_are_not_copied(image, project, data, whole):
    there = project / "data" / "numbers"
    (there / "sub").mkdir(parents=True)
    (there / "a.bin").write_text("a.bin")
    (there / "sub" / "b.bin").write_text("sub/b.bin" if whole else "other")
    job = prepared(image, (), trainer="net.py", data=str(data))
    names = [parcel.source.name for parcel in job.parcels]
    if whole:
        assert job.record.spec.command[2:4] == ("--data", str(there))
        assert f"{there}:{there}:ro" in job.record.spec.binds
        assert names == ["net.py", "tiny.sif"]
    else:
        assert job.record.spec.command[2:4] == ("--data", "/big/data/numbers")
        assert names == ["net.py", "tiny.sif", "a.bin", "b.bin"]
