"""Test images and SIF files that a real Docker engine and a real Apptainer make."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid

import msgspec
import pytest

from tests.flip import flip
from tests.services.program import ROOT, interrupted_at, toolkit
from tests.services.proxy import MortalEngine
from toolkit.errors import CheckFailed, Missing
from toolkit.image.builds import emit
from toolkit.image.builds.build import build, find
from toolkit.image.builds.check import check
from toolkit.image.files.digest import check_digest, digest_file
from toolkit.image.inspect import inspect
from toolkit.image.locks import recipe
from toolkit.image.locks.lock import lock_path, save_lock
from toolkit.image.sifs import sif
from toolkit.model.progress import Silent
from toolkit.run.docker import base
from toolkit.run.docker.builder import BUILDER, contained_apptainer
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import (
    BuildOptions,
    build_image,
    connect,
    find_image,
    forget_image,
    named_like,
    tag_image,
    untag_image,
)
from toolkit.run.owner import is_running

SMALL = "mpi-only"
SMALL_TEXT = (ROOT / "recipes" / f"{SMALL}.toml").read_text()


class Heard:
    def __init__(self):
        self.steps = []

    def step(self, text):
        self.steps.append(text)

    def detail(self, text):
        pass


@pytest.fixture(scope="module")
def small_lock(locked):
    return locked(SMALL)


@pytest.fixture(scope="module")
def small(engine, small_lock):
    named = recipe.load(SMALL)
    build(engine, named, small_lock, Silent())
    return named


@pytest.fixture(scope="module")
def small_sif(engine, small, tmp_path_factory):
    target = tmp_path_factory.mktemp("sif") / "small.sif"
    return sif.convert(engine, small.tag, target, Silent())


@pytest.fixture
def foundation(engine):
    return base.ensure_base(engine, "bookworm", "debian:bookworm-slim", Silent()).reference


def variant(tmp_path, name, lock, **changes):
    file = tmp_path / f"{name}-{uuid.uuid4().hex[:8]}.toml"
    file.write_text(SMALL_TEXT)
    named = recipe.load(str(file))
    changed = msgspec.structs.replace(lock, recipe=named.name, **changes)
    save_lock(changed, lock_path(str(file)))
    return named, changed


def without_cython(lock):
    """Return the lock's build stage without Cython, so that the compilation of mpi4py fails."""
    wheels = tuple(file for file in lock.build.wheels if file.name != "cython")
    return msgspec.structs.replace(lock.build, wheels=wheels)


def inside(engine, named, *words):
    return run_once(engine, Box(named.tag), words)


def ours(engine):
    labels = ("toolkit=run", "toolkit=build")
    return {c["Id"] for label in labels for c in engine.api.containers(all=True, filters={"label": label})}


def leaves_nothing(engine, before, patience=120.0):
    """Return whether all new containers end in ``patience`` seconds, also containers of parallel tests."""
    deadline = time.monotonic() + patience
    left = ours(engine) - before
    while left & ours(engine) and time.monotonic() < deadline:
        time.sleep(0.2)
    return not left & ours(engine)


def owners(engine):
    found = engine.api.containers(all=True, filters={"label": "toolkit.owner"})
    return {c["Id"]: int(c["Labels"]["toolkit.owner"].rpartition(":")[2]) for c in found}


def of(engine, *processes):
    """Return only the containers of these processes, because parallel tests have containers, too."""
    return {container for container, owner in owners(engine).items() if owner in processes}


def left(engine):
    """Return the containers whose owner process has exited."""
    return {container for container, owner in owners(engine).items() if not is_running(owner)}


class TestTheEngine:
    def test_it_is_the_one_of_the_docker_commands_context(self, engine, tmp_path, monkeypatch):
        monkeypatch.setattr("toolkit.run.docker.engine._SOCKET", f"unix://{tmp_path}/none.sock")
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        (tmp_path / "config.json").write_text("{}")
        host = f"host={os.environ.get('DOCKER_HOST', 'unix:///var/run/docker.sock')}"
        monkeypatch.delenv("DOCKER_HOST", raising=False)
        subprocess.run(["docker", "context", "create", "rootless", "--docker", host], check=True)
        with pytest.raises(Missing):
            connect()
        subprocess.run(["docker", "context", "use", "rootless"], check=True)
        with contextlib.closing(connect()) as client:
            assert client.info()["ID"] == engine.info()["ID"]


class TestBuilding:
    def test_the_image_says_what_is_in_it_and_so_does_its_label(self, engine, small):
        stack = json.loads("\n".join(inside(engine, small, "cat", "/opt/toolkit/stack.json").lines))
        assert (stack["mpi"], stack["mpi_version"], stack["pmix"]) == ("openmpi", "4.1.4", "4.2.2")
        assert stack["mpi4py"] == "4.1.1"
        labels = engine.images.get(small.tag).labels
        assert labels["toolkit.recipe"] == SMALL
        assert labels["org.opencontainers.image.title"] == SMALL
        assert labels["toolkit.base"] == stack["base"]

    def test_no_compiler_no_certificate_and_no_setting_is_left_in_it(self, engine, small):
        script = "for p in gcc cc g++ make cmake pip; do command -v $p; done; ls -A /tmp; env"
        said = "\n".join(inside(engine, small, "sh", "-c", script).lines)
        assert not [
            word for word in ("gcc", "/cc", "g++", "make", "pip", "certificates") if word in said.lower()
        ]
        assert "PIP_" not in said
        assert "SSL" not in said

    def test_trainers_are_importable_and_compiled(self, engine, small):
        where = inside(engine, small, "python", "-c", "import toolkit.trainers as t; print(t.__cached__)")
        assert where.ok
        assert inside(engine, small, "test", "-f", where.lines[-1]).ok

    def test_two_ranks_pass_the_preflight_and_one_does_not(self, engine, small):
        words = ("python", "-m", "toolkit.trainers.preflight", "--tasks", "2")
        launcher = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")
        assert inside(engine, small, *launcher, *words).ok
        assert inside(engine, small, *words).status != 0

    def test_nothing_is_built_where_nothing_has_changed(self, engine, small, small_lock):
        heard = Heard()
        began = time.monotonic()
        assert build(engine, small, small_lock, heard).reused
        assert time.monotonic() - began < 20
        assert heard.steps == [f"{small.tag} is up to date: its lock and toolkit's code have not changed"]

    def test_the_command_line_tells_tag_size_base_and_lock(self, engine, small):
        told = json.loads(toolkit("image", "build", SMALL, "--json").stdout)
        assert told["schema"] == "toolkit.built/1"
        assert (told["tag"], told["reused"]) == (small.tag, True)
        assert told["bytes"] > 1 << 20
        assert "toolkit-base:bookworm" in told["base"] or "published" in told["base"]
        assert told["lock"] == engine.images.get(small.tag).labels["toolkit.lock"]

    def test_a_failed_step_is_named_with_its_last_lines_and_leaves_no_image(
        self, engine, small, small_lock, tmp_path
    ):
        named, lock = variant(tmp_path, "broken-step", small_lock, build=without_cython(small_lock))
        before = ours(engine)
        with pytest.raises(
            CheckFailed, match=r"mpi4py: the build failed in step \d+ of \d+ \(RUN "
        ) as caught:
            build(engine, named, lock, Silent())
        assert any("ython" in line for line in caught.value.detail)
        assert find(engine, named) is None
        assert leaves_nothing(engine, before)

    def test_a_failed_build_ends_the_command_with_1_and_without_a_traceback(
        self, small, small_lock, tmp_path
    ):
        named, _ = variant(tmp_path, "broken-step", small_lock, build=without_cython(small_lock))
        done = toolkit("image", "build", str(tmp_path / f"{named.name}.toml"), ok=False)
        assert done.returncode == 1
        assert "the build failed in step" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_lock_that_no_longer_fits_is_refused(self, small_lock, tmp_path):
        named, _ = variant(tmp_path, "stale", small_lock, recipe_sha256="0" * 64)
        done = toolkit("image", "build", str(tmp_path / f"{named.name}.toml"), ok=False)
        assert done.returncode == 2
        assert "the recipe has changed since it was locked" in done.stderr
        assert "--upgrade" in done.stderr

    def test_an_image_that_is_not_what_was_asked_for_gets_no_name(self, engine, small, small_lock, tmp_path):
        chosen = tuple(
            msgspec.structs.replace(one, version="4.0.3") if one.component == "mpi4py" else one
            for one in small_lock.solution.chosen
        )
        solution = msgspec.structs.replace(small_lock.solution, chosen=chosen)
        claimed = msgspec.structs.replace(small_lock, solution=solution)
        with pytest.raises(CheckFailed) as caught:
            check(engine, small.tag, claimed, Silent())
        assert "mpi4py: the lock names 4.0.3, the image has 4.1.1" in caught.value.detail

    def test_a_step_that_needs_too_much_memory_is_told_as_such(self, engine, foundation):
        files = {"Dockerfile": f"FROM {foundation}\nRUN head -c 400m /dev/zero | tail".encode()}
        with pytest.raises(CheckFailed, match="most likely by the memory limit of 64 MiB"):
            build_image(engine, files, "the glutton", Silent(), BuildOptions(memory=64 << 20))

    def test_a_build_that_takes_too_long_is_ended(self, engine, foundation):
        files = {"Dockerfile": f"FROM {foundation}\nRUN sleep 300 # {time.time()}".encode()}
        before = ours(engine)
        with pytest.raises(
            CheckFailed, match="did not answer in time while toolkit was building the sleeper"
        ):
            build_image(engine, files, "the sleeper", Silent(), BuildOptions(timeout=3))
        assert no_sleeper(engine)
        assert leaves_nothing(engine, before)

    def test_ctrl_c_ends_the_step_that_runs(self, engine, foundation):
        process = start_python(SLEEPING_BUILD, foundation)
        wait_for(lambda: not no_sleeper(engine, patience=0), "the step to begin")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) != 0
        assert no_sleeper(engine)

    def test_an_engine_that_dies_during_the_build_is_told_as_such(self, tmp_path, foundation, monkeypatch):
        mortal = MortalEngine(tmp_path / "docker.sock", b"Step 2/2")
        monkeypatch.setenv("DOCKER_HOST", mortal.url)
        files = {"Dockerfile": f"FROM {foundation}\nRUN sleep 20 # {time.time()}".encode()}
        with pytest.raises(Missing, match="engine") as caught:
            build_image(connect(), files, "the image", Silent(), BuildOptions())
        assert "again" in caught.value.fix

    @pytest.mark.parametrize("step", ["Building the stack", "Testing the image"])
    def test_ctrl_c_through_the_program_ends_in_130_and_tags_nothing(
        self, engine, small, small_lock, tmp_path, step
    ):
        named, _ = variant(tmp_path, "interrupted", small_lock)
        before = left(engine)
        status, said = interrupted_at(step, "image", "build", str(tmp_path / f"{named.name}.toml"))
        assert (status, said[-1]) == (130, "error: interrupted")
        assert find(engine, named) is None
        assert left(engine) <= before
        for name in named_like(engine, f"toolkit-stack:{named.name}"):
            untag_image(engine, name)

    @pytest.mark.parametrize("verb", ["build", "sif"])
    def test_where_no_engine_answers_the_command_says_so(self, tmp_path, monkeypatch, verb):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
        done = toolkit("image", verb, SMALL, ok=False)
        assert done.returncode == 3
        assert "no Docker engine answers" in done.stderr
        assert "apt-get install docker.io" in done.stderr

    def test_a_new_tag_does_not_leave_the_old_image_nameless(self, engine, foundation):
        name = "toolkit/tag-test:latest"
        ids = []
        for number in (1, 2):
            text = f"FROM {foundation}\nLABEL toolkit=test number={number}-{time.time()}"
            ids.append(build_image(engine, {"Dockerfile": text.encode()}, name, Silent(), BuildOptions()))
            tag_image(engine, ids[-1], name)
        assert find_image(engine, ids[0]) is None
        engine.images.remove(name, force=True)


class TestBase:
    def test_what_the_engine_has_is_used_again(self, engine, foundation):
        heard = Heard()
        again = base.ensure_base(engine, "bookworm", "debian:bookworm-slim", heard)
        assert again.reference == foundation
        assert heard.steps == []

    def test_where_no_registry_answers_one_is_bootstrapped_and_runs(self, engine):
        name = "toolkit-base:bootstrap-test"
        image = base._bootstrap(engine, "bookworm", name, Silent())
        ran = run_once(engine, Box(name), ("cat", "/etc/debian_version"))
        engine.images.remove(name, force=True)
        assert image.labels["toolkit"] == "base"
        assert ran.lines[0].startswith("12.")

    def test_without_mmdebstrap_the_package_to_install_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(Missing, match="mmdebstrap") as caught:
            base._mmdebstrap("bookworm", tmp_path / "base.tar", Silent())
        assert "apt-get install mmdebstrap" in caught.value.fix

    def test_a_reference_that_no_registry_has_is_no_base(self, engine):
        assert base._pull(engine, "toolkit-no-such-image:none", Silent()) is None


class TestConverting:
    def test_the_file_is_whole_checked_and_named_by_its_checksum(self, small_sif):
        path = sif_path(small_sif)
        assert small_sif.untried == ""
        assert digest_file(path).read_text() == f"{small_sif.sha256}  small.sif\n"
        assert check_digest(path) == small_sif.sha256
        assert subprocess.run(["sha256sum", "-c", "small.sif.sha256"], cwd=path.parent).returncode == 0

    def test_it_is_compressed_with_zstd(self, small_sif):
        content = sif_path(small_sif).read_bytes()
        start = content.index(b"hsqs", 32768)
        assert int.from_bytes(content[start + 20 : start + 22], "little") == 6

    def test_what_is_in_it_can_be_read_without_starting_it(self, small_sif):
        facts = inspect(sif_path(small_sif))
        assert facts.mpi is not None
        assert (facts.mpi.implementation, facts.mpi.version, facts.mpi4py) == ("openmpi", "4.1.4", "4.1.1")
        assert facts.disagreements == ()

    def test_it_is_not_made_again_from_the_same_image(self, engine, small, small_sif):
        again = sif.convert(engine, small.tag, sif_path(small_sif), Silent())
        assert (again.reused, again.sha256) == (True, small_sif.sha256)

    def test_a_flipped_byte_is_noticed_and_mended(self, engine, small, small_sif, tmp_path):
        path = copied(small_sif, tmp_path)
        flip(path, path.stat().st_size // 2)
        done = toolkit("image", "inspect", str(path), ok=False)
        assert done.returncode == 1
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        assert done.stderr == (
            f"error: {path}: its content has changed since its checksum was written: its SHA-256 is "
            f"{found[:12]}…, but small.sif.sha256 has {small_sif.sha256[:12]}…\n"
            "hint: build or copy the file again\n"
        )
        mended = sif.convert(engine, small.tag, path, Silent())
        assert not mended.reused
        assert check_digest(path) == mended.sha256

    def test_a_flipped_byte_in_what_is_read_is_noticed_without_a_checksum_too(self, small_sif, tmp_path):
        path = copied(small_sif, tmp_path)
        digest_file(path).unlink()
        start = path.read_bytes().index(b"hsqs", 32768)
        table = int.from_bytes(path.read_bytes()[start + 72 : start + 80], "little")
        # Flip a byte in the compressed names of the first folder, and not in the length before the names.
        flip(path, start + table + 6)
        done = toolkit("image", "inspect", str(path), ok=False)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"error: {path}: the image is damaged: ")

    def test_a_file_that_was_cut_short_is_noticed(self, small_sif, tmp_path):
        path = copied(small_sif, tmp_path)
        os.truncate(path, path.stat().st_size - 4096)
        digest_file(path).unlink()
        done = toolkit("image", "inspect", str(path), ok=False)
        assert done.returncode == 2
        assert "the SIF is incomplete" in done.stderr

    def test_an_image_that_is_not_there_is_missing_with_the_command_that_makes_it(self, engine, tmp_path):
        with pytest.raises(Missing) as caught:
            sif.convert(engine, "toolkit/no-such:latest", tmp_path / "a.sif", Silent())
        assert "toolkit image build" in caught.value.fix

    @pytest.mark.parametrize("place", ["/proc/x", "/proc"])
    def test_a_place_that_takes_no_files_is_a_wrong_call(self, small, place):
        done = toolkit("image", "sif", SMALL, "-o", f"{place}/y.sif", ok=False)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: -o: {place} cannot be written: ")

    @pytest.mark.parametrize("step", ["Packing", "Checking"])
    def test_ctrl_c_at_each_step_ends_in_130_and_leaves_nothing(self, engine, small, tmp_path, step):
        before = ours(engine)
        target = tmp_path / "out" / "a.sif"
        status, said = interrupted_at(step, "image", "sif", SMALL, "-o", str(target))
        assert (status, said[-1]) == (130, "error: interrupted")
        assert list(target.parent.iterdir()) == []
        assert leaves_nothing(engine, before)

    def test_ctrl_c_leaves_no_file_and_no_container(self, engine, small, tmp_path):
        target = tmp_path / "out" / "a.sif"
        process = start_toolkit("-v", "image", "sif", SMALL, "-o", str(target))
        wait_for(lambda: of(engine, process.pid) and list(target.parent.glob(".*.part")), "the SIF")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert list(target.parent.iterdir()) == []
        assert not of(engine, process.pid)

    def test_a_failed_conversion_keeps_the_file_that_was_there(
        self, engine, small, small_sif, tmp_path, monkeypatch
    ):
        path = copied(small_sif, tmp_path)
        monkeypatch.setenv("TOOLKIT_BUILD_MEMORY", "12m")
        with pytest.raises(CheckFailed, match=r"packing toolkit/mpi-only:latest: mksquashfs"):
            sif.convert(engine, small.tag, path, Silent(), fresh=True)
        assert check_digest(path) == small_sif.sha256
        assert not list(tmp_path.glob(".*"))

    def test_what_a_killed_conversion_left_is_removed_by_the_next(self, engine, small, tmp_path):
        target, before = tmp_path / "a.sif", of(engine, os.getpid())
        process = start_toolkit("-v", "image", "sif", SMALL, "-o", str(target))
        wait_for(lambda: len(of(engine, process.pid)) > 1 and list(tmp_path.glob(".*.part")), "the SIF")
        process.kill()
        process.wait()
        assert of(engine, process.pid)
        sif.convert(engine, small.tag, target, Silent())
        assert of(engine, process.pid, os.getpid()) <= before
        assert not list(tmp_path.glob(".*"))
        assert check_digest(target)

    def test_a_folder_that_is_nearly_full_is_refused_before_any_work(self, engine, small, small_disk):
        with pytest.raises(CheckFailed, match=r"has [\d.]+ [kMG]?B free, and the SIF needs at least"):
            sif.convert(engine, small.tag, small_disk(16) / "a.sif", Silent())

    def test_a_disk_that_fills_up_is_told_as_such_and_nothing_is_left(self, engine, small, small_disk):
        target = small_disk(36) / "a.sif"
        with pytest.raises(CheckFailed, match="the disk is full") as caught:
            sif.convert(engine, small.tag, target, Silent())
        assert "free space" in caught.value.fix
        assert list(target.parent.iterdir()) == []


class TestOnAHostWithApptainer:
    def test_it_is_found_inspects_and_runs(self, engine, small_sif, tmp_path, host_with_apptainer):
        copied(small_sif, tmp_path)
        binds = {str(ROOT / "toolkit"): "/src/toolkit:ro", str(spython_folder()): "/src/spython:ro"}
        box = Box(
            host_with_apptainer,
            binds={**binds, str(tmp_path): "/work"},
            env={"PYTHONPATH": "/src", "PYTHONDONTWRITEBYTECODE": "1"},
            nested=True,
            memory=3 << 30,
        )
        ran = run_once(engine, box, ("python3", "-c", ON_A_HOST))
        assert ran.ok, ran.lines
        told = json.loads(ran.lines[-1])
        assert told["version"].startswith("apptainer version 1.")
        assert told["recipe"] == SMALL
        assert told["status"] == 0, told["said"]
        assert told["broken"] != 0
        assert told["uninspectable"]


SLEEPING_BUILD = """
import sys, time
from toolkit.model.progress import Silent
from toolkit.run.docker.engine import BuildOptions, build_image, connect
text = f"FROM {sys.argv[1]}\\nRUN sleep 300 # {time.time()}"
build_image(connect(), {"Dockerfile": text.encode()}, "the sleeper", Silent(), BuildOptions())
"""

ON_A_HOST = """
import json
from pathlib import Path
from toolkit.errors import CheckFailed
from toolkit.run import singularity
host = singularity.find()
target = Path("/work/small.sif")
labels = host.labels(target)
ran = host.execute(target, ("python", "-c", "import mpi4py"))
broken = host.execute(target, ("python", "-c", "import no_such_module"))
Path("/work/junk.sif").write_bytes(b"junk")
try:
    host.labels(Path("/work/junk.sif"))
    uninspectable = ""
except CheckFailed as error:
    uninspectable = error.message
print(json.dumps({"version": host.version, "recipe": labels.get("toolkit.recipe"),
    "status": ran.status, "said": ran.output, "broken": broken.status, "uninspectable": uninspectable}))
"""


@pytest.fixture(scope="module")
def host_with_apptainer(engine):
    contained_apptainer(engine, Silent())
    install = "apt-get update && apt-get install -y --no-install-recommends python3"
    files = {"Dockerfile": f'FROM {BUILDER}\nLABEL toolkit="test"\nRUN {install}'.encode()}
    image = build_image(engine, files, "a host with Apptainer", Silent(), BuildOptions())
    yield image
    forget_image(engine, image)


@pytest.fixture
def small_disk(tmp_path):
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    mounted = []

    def mount(mebibytes):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        size = f"size={mebibytes}m,mode=1777"
        subprocess.run([*root, "mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run([*root, "umount", "--lazy", str(folder)], check=True)


def sif_path(made):
    from pathlib import Path

    return Path(made.path)


def copied(made, folder):
    import shutil

    target = folder / "small.sif"
    shutil.copyfile(made.path, target)
    shutil.copyfile(digest_file(sif_path(made)), digest_file(target))
    return target


def created(engine, named):
    return engine.images.get(named.tag).labels[emit.CREATION_LABEL]


def spython_folder():
    from pathlib import Path

    import spython

    return Path(spython.__file__).parent


def start_toolkit(*words):
    return subprocess.Popen([sys.executable, "-m", "toolkit", *words], stderr=subprocess.DEVNULL, cwd=ROOT)


def start_python(code, *words):
    return subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.DEVNULL)


def no_sleeper(engine, patience=10.0):
    deadline = time.monotonic() + patience
    while True:
        running = [c for c in engine.api.containers() if "sleep 300" in c["Command"]]
        if not running or time.monotonic() > deadline:
            return not running
        time.sleep(0.2)


def wait_for(condition, what, patience=120.0):
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)
