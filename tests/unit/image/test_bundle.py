import errno
import subprocess
import tarfile
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.image.bundles import contents, members, packed, write_bundle
from tests.unit.image.sifs import sif, squashfs
from tests.unit.tables import every_row
from toolkit.cli.image.bundle import command as bundle_command
from toolkit.data import shipped_folder
from toolkit.errors import BadInput, Damaged
from toolkit.image.transfer import bundle as bundles
from toolkit.image.transfer import bundle_reader, bundled_recipes
from toolkit.image.transfer.bundle import bundle, write
from toolkit.image.transfer.bundle_format import INDEX, INSTALL, SUMS, Index, read_index, read_sums
from toolkit.image.transfer.unbundle import unbundle
from toolkit.model.progress import Silent

ID = f"sha256:{'0' * 64}"
EMPTY = Index(toolkit="1", pythons=("3.11",), machine="x86_64", recipes=(), images=(), sifs=())


def no_engine():
    """Replace the Docker engine by an engine that does not answer."""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a bundle with one recipe; toolkit unpacks it into separate folders."""
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = {}
    for number, (name, content) in enumerate(contents().items()):
        files[name] = tmp_path / f"source{number}"
        files[name].write_bytes(content)
    write(tmp_path / "bundle.tar", files, Silent())
    return tmp_path, files, next(name for name in files if name.startswith("files/"))


def test_the_bytes_depend_on_nothing_but_the_files(made):
    folder, files, _ = made
    for file in files.values():
        file.touch()
    write(folder / "again.tar", dict(reversed(files.items())), Silent())
    assert (folder / "again.tar").read_bytes() == (folder / "bundle.tar").read_bytes()
    with tarfile.open(folder / "again.tar") as archive:
        names = archive.getnames()
        assert names[0] == SUMS
        assert {(m.mtime, m.uid, m.uname) for m in archive} == {(0, 0, "")}
        assert archive.getmember(INSTALL).mode == 0o755


def test_what_sha256sum_says_of_an_unpacked_bundle(made):
    folder = made[0]
    (folder / "out").mkdir()
    subprocess.run(["tar", "xf", str(folder / "bundle.tar"), "-C", str(folder / "out")], check=True)
    subprocess.run(["sha256sum", "--quiet", "-c", SUMS], cwd=folder / "out", check=True)


def test_everything_gets_to_its_place_and_again(made):
    folder, files, name = made
    own = ["mine.toml", "mine.lock.json"]
    for written in (own, []):
        done = unbundle(folder / "bundle.tar", no_engine, Silent())
        assert (folder / "cache" / name).read_bytes() == files[name].read_bytes()
        for recipe in own:
            place = folder / "config/toolkit/recipes" / recipe
            assert place.read_bytes() == files[f"recipes/{recipe}"].read_bytes()
        assert done.recipes == tuple(written)
        assert done.signature.state == "none"
    assert [p.name for p in (folder / "cache").iterdir()] == ["files"]


def test_the_folder_that_it_was_unpacked_into_does_as_well(made):
    folder, files, name = made
    unpacked = folder / "out"
    unpacked.mkdir()
    subprocess.run(["tar", "xf", str(folder / "bundle.tar"), "-C", str(unpacked)], check=True)
    (unpacked / "a file of the user").write_bytes(b"x")
    done = unbundle(unpacked, no_engine, Silent())
    assert (done.recipes, done.files) == (
        ("mine.toml", "mine.lock.json"),
        len(list(unpacked.glob("files/*/*"))),
    )
    assert (folder / "cache" / name).read_bytes() == files[name].read_bytes()
    assert (unpacked / name).read_bytes() == files[name].read_bytes()
    wheel = next(unpacked.glob("wheels/*"))
    wheel.write_bytes(b"another")
    with pytest.raises(Damaged, match="does not match its hash in SHA256SUMS"):
        unbundle(unpacked, no_engine, Silent())
    wheel.unlink()
    wheel.symlink_to(files["wheels/" + wheel.name])
    with pytest.raises(Damaged, match="a symbolic link"):
        unbundle(unpacked, no_engine, Silent())


def test_what_came_with_toolkit_is_not_installed_before_it(made, monkeypatch):
    folder, files, _ = made
    came = folder / "shipped"
    came.mkdir()
    for name in ("mine.toml", "mine.lock.json"):
        (came / name).write_bytes(files[f"recipes/{name}"].read_bytes())
    monkeypatch.setattr(bundled_recipes, "shipped_folder", lambda kind: came)
    assert unbundle(folder / "bundle.tar", no_engine, Silent()).recipes == ()
    (came / "mine.lock.json").unlink()
    assert unbundle(folder / "bundle.tar", no_engine, Silent()).recipes == ("mine.lock.json",)


def test_a_damaged_file_in_the_cache_is_replaced(made):
    folder, files, name = made
    unbundle(folder / "bundle.tar", no_engine, Silent())
    (folder / "cache" / name).write_bytes(b"rotten")
    unbundle(folder / "bundle.tar", no_engine, Silent())
    assert (folder / "cache" / name).read_bytes() == files[name].read_bytes()


def test_a_place_on_another_file_system_is_written_whole(tmp_path, monkeypatch):
    (tmp_path / "copy").write_bytes(b"content")

    def across(self, target):
        if self.name == "copy":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        self.rename(target)

    monkeypatch.setattr(Path, "replace", across)
    bundle_reader.install(tmp_path / "copy", tmp_path / "there" / "place")
    assert [p.read_bytes() for p in (tmp_path / "there").iterdir()] == [b"content"]


def test_a_bundle_without_recipes_needs_no_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("toolkit.cli.image.bundle.connect", lambda: pytest.fail("the engine was asked"))
    wheel = tmp_path / "a-1-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    monkeypatch.setattr(bundles, "gather", lambda *_: [wheel])
    image = tmp_path / "my.sif"
    image.write_bytes(sif(squashfs({"/etc/hostname": "a"})))
    words = ["--sif", str(image), "-o", str(tmp_path / "b.tar")]
    done = CliRunner().invoke(bundle_command, words, obj={"verbose": False, "quiet": True})
    assert done.exit_code == 0, done.output
    with tarfile.open(tmp_path / "b.tar") as archive:
        names = set(archive.getnames())
    assert {"wheels/a-1-py3-none-any.whl", f"sif/{image.name}", INSTALL, INDEX} < names
    assert not any(name.startswith(("images/", "recipes/")) for name in names)


def test_two_sifs_that_differ_only_by_case_are_refused(tmp_path):
    sifs = (tmp_path / "a.sif", tmp_path / "A.sif")
    with pytest.raises(BadInput, match=r"--sif: .* two files with the name A\.sif"):
        bundle(None, (), tmp_path / "b.tar", Silent(), sifs=sifs)


class Engine:
    """A fake Docker engine that records loaded images; at each load, the cache must contain files."""

    def __init__(self, folder):
        self.folder, self.loaded = folder, []

    def load(self, client, archive, identity, name):
        self.loaded.append((client, archive.read_bytes(), identity, name))
        assert list(self.folder.glob("cache/files/*/*"))


def test_images_are_loaded_last_and_wait_without_an_engine(made, monkeypatch):
    folder = made[0]
    engine = Engine(folder)
    monkeypatch.setattr("toolkit.run.docker.engine_images.load", engine.load)
    listed = contents(images=[{"name": "toolkit-base:12-a", "id": ID, "path": "images/a.tar"}])
    write_bundle(folder / "bundle.tar", {**listed, "images/a.tar": b"an image"})
    done = unbundle(folder / "bundle.tar", no_engine, Silent())
    assert (done.waiting, done.images) == (("toolkit-base:12-a",), ())
    done = unbundle(folder / "bundle.tar", lambda: "client", Silent())
    assert (done.waiting, done.images) == ((), ("toolkit-base:12-a",))
    assert engine.loaded == [("client", b"an image", ID, "toolkit-base:12-a")]


def test_no_engine_is_asked_before_every_file_was_compared(made):
    folder = made[0]
    listed = contents(images=[{"name": "toolkit-base:12-a", "id": ID, "path": "images/a.tar"}])
    found = members({**listed, "images/a.tar": b"an image"})
    found[-1] = (found[-1][0], b"a whEEl")
    (folder / "bundle.tar").write_bytes(packed(found))
    with pytest.raises(Damaged):
        unbundle(folder / "bundle.tar", lambda: pytest.fail("the engine was asked"), Silent())


LINE = f"{'0' * 64}  "


@every_row("path", ["/etc/passwd", "../x", "a/../../x", "files//x", "files/.hidden", "", "a\\b"])
def test_a_path_that_leads_elsewhere_is_refused(made, path):
    with pytest.raises(BadInput):
        read_sums(f"{LINE}{INDEX}\n{LINE}{path}\n".encode(), made[0])


@given(st.text(max_size=60))
def test_no_line_surprises(tmp_path_factory, text):
    where = tmp_path_factory.getbasetemp()
    try:
        sums = read_sums(f"{LINE}{INDEX}\n{LINE}{text}\n".encode("utf-8", "surrogatepass"), where)
    except BadInput:
        return
    assert all((where / path).resolve().is_relative_to(where.resolve()) for path in sums)


@every_row("text", [b"{", b"{}", b"[" * 9999, msgspec.json.encode(EMPTY).replace(b"/1", b"/9")])
def test_an_index_that_is_none_or_of_another_time(made, text):
    with pytest.raises(BadInput):
        read_index(text, made[0])


def test_a_sif_that_is_none_is_named(tmp_path):
    with pytest.raises(BadInput, match="--sif"):
        bundles._check_sif(tmp_path / "absent.sif")
    (tmp_path / "other.sif").write_bytes(b"x" * 10)
    with pytest.raises(BadInput, match="not a SIF"):
        bundles._check_sif(tmp_path / "other.sif")
    (tmp_path / "short.sif").write_bytes(sif(b"x")[:100])
    with pytest.raises(Damaged, match="incomplete"):
        bundles._check_sif(tmp_path / "short.sif")


@every_row("name", ["my image.sif", "a(1).sif", "\u00fcbung.sif", "_a.sif", "-a.sif", ".a.sif", "a\n.sif"])
def test_a_sif_that_could_not_be_unpacked_is_refused_before_any_work(tmp_path, name):
    with pytest.raises(BadInput, match=r"--sif: .* is not a valid file name in a bundle"):
        bundle(None, (), tmp_path / "b.tar", Silent(), sifs=(tmp_path / name,))
    with pytest.raises(BadInput):
        read_sums(f"{LINE}{INDEX}\n{LINE}sif/{name}\n".encode(), tmp_path)


def test_two_of_one_name_are_refused(tmp_path):
    twice = (tmp_path / "one" / "a.sif", tmp_path / "two" / "a.sif")
    with pytest.raises(BadInput, match=r"--sif: .* two files with the name a\.sif"):
        bundle(None, (), tmp_path / "b.tar", Silent(), sifs=twice)
    recipes = [tmp_path / folder / "mine.toml" for folder in ("one", "two")]
    for recipe in recipes:
        recipe.parent.mkdir()
        recipe.write_bytes((shipped_folder("recipes") / "mpi-only.toml").read_bytes())
    with pytest.raises(BadInput, match=r"RECIPES: .* two files with the name mine"):
        bundle(None, tuple(map(str, recipes)), tmp_path / "b.tar", Silent())


def test_a_lock_travels_with_its_signature_and_a_replaced_one_loses_it(made):
    folder, files, _ = made
    own = folder / "config/toolkit/recipes"
    (folder / "signature").write_bytes(b"-----BEGIN PGP SIGNED MESSAGE-----")
    signed = {**files, "recipes/mine.lock.json.asc": folder / "signature"}
    write(folder / "signed.tar", signed, Silent())
    done = unbundle(folder / "signed.tar", no_engine, Silent())
    assert done.recipes == ("mine.toml", "mine.lock.json", "mine.lock.json.asc")
    assert {path.name for path in own.iterdir()} == set(done.recipes)
    write_bundle(folder / "other.tar", contents(title="Another recipe"))
    unbundle(folder / "other.tar", no_engine, Silent(), replace=True)
    assert {path.name for path in own.iterdir()} == {"mine.toml", "mine.lock.json"}
