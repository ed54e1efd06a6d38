"""Test ``--env-image``, which mounts an environment of Python packages into the container of an image."""

import shutil

import pytest
from click.testing import CliRunner

from tests.unit.cli.test_launch import Cluster, Told
from tests.unit.image.envs.made import write_image, write_wheel
from tests.unit.image.signed import gpg_home
from tests.unit.tables import every_row
from toolkit.cli.main import cli
from toolkit.errors import BadInput, CheckFailed, Damaged
from toolkit.image.envs.create import create
from toolkit.image.envs.requirements import EnvRequirements
from toolkit.image.inspect import inspect
from toolkit.image.trust.detached import sign_file
from toolkit.job import prepare
from toolkit.job.request import layering
from toolkit.job.request.envfile import check_runtime
from toolkit.job.request.flags import Flags
from toolkit.job.sources import check
from toolkit.model.progress import Silent
from toolkit.model.rank import RankView

SITE = "/opt/toolkit-env/lib/python3.11/site-packages"
USER = "me@example.org"


def only_wheels_here(patch, folder):
    patch.setenv("UV_NO_INDEX", "1")
    patch.setenv("UV_OFFLINE", "1")
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    patch.setenv("TOOLKIT_CACHE_DIR", str(folder / "cache"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        only_wheels_here(patch, folder)
        image = write_image(folder / "centre.sif", {"numpy": "1.26.4", "mpi4py": "3.1.6"})
        made(folder, image, "mpi4py==4.1.1", replaceable=frozenset({"mpi4py"}))
    return folder


@pytest.fixture
def image(tmp_path, built, monkeypatch):
    only_wheels_here(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    return shutil.copy2(built / "centre.sif", tmp_path / "centre.sif")


@pytest.fixture
def env(tmp_path, built):
    for file in built.glob("my.env*"):
        shutil.copy2(file, tmp_path)
    return tmp_path / "my.env"


def made(tmp_path, image, *requirements, outside=(), **more):
    write_wheel(tmp_path / "wheels", "mpi4py", "4.1.1", scripts="mpi-run")
    links = ("--find-links", str(tmp_path / "wheels"))
    wanted = EnvRequirements(requirements=requirements, options=links, code_folders=outside)
    create(wanted, image, tmp_path / "my.env", Silent(), **more)
    return tmp_path / "my.env"


def prepared(image, env_image, *, force=False, remote=True, flags=None, **more):
    said = {
        "image": str(image),
        "env_image": str(env_image),
        "mode": "srun-none",
        "directory": "/big",
        **more,
    }
    given = layering.merge_request(said, ("python3", "train.py"))
    chosen = flags or Flags(force=force)
    sources = check(given, chosen)
    return prepare.prepare(Cluster(), given, chosen, sources, Told(), remote=remote)


def test_image_and_environment_are_read_as_one(image, env):
    bare, both = inspect(image), inspect(image, view=RankView(env=str(env)))
    assert (bare.mpi4py, both.mpi4py) == ("3.1.6", "4.1.1")
    assert both.evidence["mpi4py"] == f"{SITE}/mpi4py-4.1.1.dist-info"
    assert both.environment["PATH"].startswith("/opt/toolkit-env/bin:")
    assert both.environment["PYTHONPATH"] == SITE
    assert both.digest == bare.digest


def test_the_script_mounts_it_and_leads_to_it(image, env):
    found = prepared(image, env, force=True)
    digest = found.record.env_digest.removeprefix("sha256:")
    there = f"/big/envs/my-{digest[:12]}.env"
    assert found.record.spec.env_image == there
    assert f"--bind {there}:/opt/toolkit-env:image-src=/,ro" in found.script
    assert f"PYTHONPATH='{SITE}'" in found.script or f"PYTHONPATH={SITE}" in found.script
    assert "/opt/toolkit-env/bin:" in found.script
    assert there in {parcel.target for parcel in found.parcels}
    assert found.record.plan.env["PYTHONPATH"] == SITE


def test_folders_that_the_user_sets_come_first(image, env):
    found = prepared(image, env, force=True, env={"PYTHONPATH": "/mine"})
    assert found.record.plan.env["PYTHONPATH"] == f"/mine:{SITE}"


def test_a_project_that_stays_outside_is_bound_and_found_first(tmp_path, image):
    project = tmp_path / "proj" / "src"
    project.mkdir(parents=True)
    env = made(tmp_path, image, outside=(str(project),))
    found = prepared(image, env, force=True, remote=False)
    assert str(project) in found.record.spec.binds
    assert found.record.plan.env["PYTHONPATH"] == f"{project}:{SITE}"


def test_a_changed_image_is_refused(image, env):
    write_image(image, {"numpy": "1.26.5", "mpi4py": "3.1.6"})
    with pytest.raises(
        CheckFailed, match=r"--env-image .*my\.env: the environment was made over centre\.sif"
    ) as error:
        prepared(image, env)
    assert error.value.fix == (
        f"build the environment again for the image of your job: `toolkit env add {env} --over {image}`"
    )


def test_a_runtime_that_cannot_mount_it_is_refused(image, env, tmp_path):
    with pytest.raises(BadInput, match=r"podman (mounts no file|needs)"):
        prepared(image, env, runtime="podman")
    with pytest.raises(
        BadInput, match=r"--env-image my\.env: podman cannot mount an environment over an image"
    ):
        check_runtime("my.env", "podman")
    check_runtime("my.env", "/usr/bin/singularity")
    check_runtime(None, "podman")


@every_row("content", [b"", b"NAME=1\n", b"hsqs" + bytes(200)])
def test_what_is_not_an_environment_is_refused(image, tmp_path, content):
    (tmp_path / "x.env").write_bytes(content)
    with pytest.raises((BadInput, Damaged)):
        prepared(image, tmp_path / "x.env")


def test_a_signature_that_is_demanded_counts_for_it_as_well(image, env, tmp_path, monkeypatch):
    with gpg_home() as keys:
        keys.make(USER)
        monkeypatch.setenv("GNUPGHOME", str(keys.home))
        sign_file(env, USER)
        prepared(image, env, force=True)
        with env.open("ab") as file:
            file.write(bytes(4096))
        with pytest.raises(CheckFailed, match="the file has changed since it was signed"):
            prepared(image, env, force=True)


def test_the_doctor_judges_both(image, env, tmp_path):
    (tmp_path / "facts.txt").write_bytes(Cluster()._answer)
    words = ["doctor", str(image), "--facts", "facts.txt", "--json", "--env-image"]
    found = CliRunner().invoke(cli, [*words, str(env)], obj={"verbose": False, "quiet": True, "debug": False})
    assert '"mpi4py":"4.1.1"' in found.stdout.replace(" ", "").replace('":\n', '":')
    assert "image-src=/,ro" in found.stdout
    gone = CliRunner().invoke(
        cli, [*words, "gone.env"], obj={"verbose": False, "quiet": True, "debug": False}
    )
    assert isinstance(gone.exception, BadInput)


def test_the_doctor_takes_a_project_outside_for_code_of_the_user(tmp_path, image):
    project = tmp_path / "proj" / "src"
    project.mkdir(parents=True)
    env = made(tmp_path, image, outside=(str(project),))
    (tmp_path / "facts.txt").write_bytes(Cluster()._answer)
    words = ["doctor", str(image), "--facts", "facts.txt", "--json", "--env-image", str(env)]
    found = CliRunner().invoke(cli, words, obj={"verbose": False, "quiet": True, "debug": False})
    assert str(project) in found.stdout
    assert "setting-breaks-mpi" not in found.stdout
