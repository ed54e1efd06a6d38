import hashlib
import subprocess
import tarfile

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.image.locks import lock
from tests.unit.image.sifs import sif
from toolkit.cli.image import command
from toolkit.data import shipped
from toolkit.errors import BadInput, CheckFailed, Damaged
from toolkit.image import bundle as bundles
from toolkit.image.bundle import INDEX, INSTALL, SUMS, BundledImage, Index, bundle, write
from toolkit.image.unbundle import read_index, read_sums, unbundle
from toolkit.model.lock import encoded
from toolkit.model.progress import Silent

QUIET = {"verbose": False, "quiet": True}
EMPTY = Index(toolkit="1", pythons=("3.11",), machine="x86_64", recipes=(), images=(), sifs=())


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A bundle of one file and one recipe, and places of its own to unpack it to."""
    monkeypatch.setenv("TOOLKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    digest = hashlib.sha256(b"a wheel").hexdigest()
    contents = {
        INDEX: msgspec.json.encode(EMPTY),
        INSTALL: (shipped("containers") / INSTALL).read_bytes(),
        f"files/{digest}/a_1%3a2.whl": b"a wheel",
        "recipes/mine.toml": b"mine",
        "recipes/mpi-only.toml": (shipped("recipes") / "mpi-only.toml").read_bytes(),
    }
    files = {}
    for number, (name, content) in enumerate(contents.items()):
        files[name] = tmp_path / f"source{number}"
        files[name].write_bytes(content)
    write(tmp_path / "bundle.tar", files, Silent())
    return tmp_path, files, f"files/{digest}/a_1%3a2.whl"


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
    folder, _, name = made
    for _ in range(2):
        done = unbundle(folder / "bundle.tar", None, Silent())
        assert (folder / "cache" / name).read_bytes() == b"a wheel"
        assert (folder / "config/toolkit/recipes/mine.toml").read_bytes() == b"mine"
        # What this installation has itself is not put before it.
        assert done.recipes == ("mine.toml",)
        assert not (folder / "config/toolkit/recipes/mpi-only.toml").exists()
    assert [p.name for p in (folder / "cache").iterdir()] == ["files"]


def test_a_damaged_file_in_the_cache_is_replaced_and_one_in_the_bundle_refused(made):
    folder, _, name = made
    unbundle(folder / "bundle.tar", None, Silent())
    (folder / "cache" / name).write_bytes(b"rotten")
    unbundle(folder / "bundle.tar", None, Silent())
    assert (folder / "cache" / name).read_bytes() == b"a wheel"
    (folder / "cache" / name).unlink()
    text = (folder / "bundle.tar").read_bytes().replace(b"a wheel", b"a whEEl")
    (folder / "bundle.tar").write_bytes(text)
    with pytest.raises(CheckFailed, match="not what SHA256SUMS says"):
        unbundle(folder / "bundle.tar", None, Silent())
    assert not list((folder / "cache" / name).parent.iterdir())


@pytest.mark.parametrize("text", [b"", b"no tar at all", bytes(2000)])
def test_what_is_no_bundle_is_refused(made, text):
    (made[0] / "bundle.tar").write_bytes(text)
    with pytest.raises(BadInput):
        unbundle(made[0] / "bundle.tar", None, Silent())


def test_an_archive_that_reaches_out_of_itself_is_refused(made):
    folder = made[0]
    with tarfile.open(folder / "evil.tar", "w") as archive:
        entry = tarfile.TarInfo("../evil")
        archive.addfile(entry)
    with pytest.raises(BadInput, match="not a bundle"):
        unbundle(folder / "evil.tar", None, Silent())
    assert not (folder / "cache" / "evil").exists()


LINE = f"{'0' * 64}  "


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", "files//x", "files/.hidden", "", "a\\b"]
)
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


@pytest.mark.parametrize("text", [b"{", b"{}", b"[" * 9999, msgspec.json.encode(EMPTY).replace(b"/1", b"/9")])
def test_an_index_that_is_none_or_of_another_time(made, text):
    with pytest.raises(BadInput):
        read_index(text, made[0])


def image(**fields) -> BundledImage:
    return BundledImage(
        **{"name": "toolkit-base:bookworm", "id": "sha256:0", "path": "images/a.tar", **fields}
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"sifs": ("sif/../../a.sif",)},
        {"sifs": ("/etc/passwd",)},
        {"sifs": ("",)},
        {"sifs": ("sif/a\x1b[2J.sif",)},
        {"images": (image(path="../a.tar"),)},
        {"images": (image(name="a\nb"),)},
        {"recipes": ("../mine",)},
    ],
)
def test_an_index_of_names_that_are_none_is_refused(made, wrong):
    text = msgspec.json.encode(msgspec.structs.replace(EMPTY, **wrong))
    with pytest.raises(BadInput, match=r"bundle\.json: '.*' is no name of a file or an image"):
        read_index(text, made[0])


@pytest.mark.parametrize(
    ("more", "name"), [({"sifs": ("sif/a.sif",)}, "sif/a.sif"), ({"images": (image(),)}, "images/a.tar")]
)
@pytest.mark.parametrize("there", [True, False])
def test_a_file_of_the_index_that_the_list_does_not_name_is_refused_before_any_work(made, more, name, there):
    folder, files, _ = made
    files[INDEX].write_bytes(msgspec.json.encode(msgspec.structs.replace(EMPTY, **more)))
    write(folder / "bundle.tar", files, Silent())
    if there:
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(b"whatever")
        with tarfile.open(folder / "bundle.tar", "a") as archive:
            archive.add(folder / name, name)
    with pytest.raises(BadInput, match=f"bundle.json names {name}, and SHA256SUMS does not") as told:
        unbundle(folder / "bundle.tar", None, Silent())
    assert told.value.fix
    assert list((folder / "cache").iterdir()) == []


def test_an_index_that_was_changed_is_refused(made):
    folder = made[0]
    text = (folder / "bundle.tar").read_bytes().replace(b'"3.11"', b'"3.12"')
    (folder / "bundle.tar").write_bytes(text)
    with pytest.raises(CheckFailed, match=r"bundle\.json: it is missing, or not what SHA256SUMS says"):
        unbundle(folder / "bundle.tar", None, Silent())


def test_a_sif_that_is_none_is_named(tmp_path):
    with pytest.raises(BadInput, match="--sif"):
        bundles._checked(tmp_path / "absent.sif")
    (tmp_path / "other.sif").write_bytes(b"x" * 10)
    with pytest.raises(BadInput, match="not a SIF"):
        bundles._checked(tmp_path / "other.sif")
    (tmp_path / "short.sif").write_bytes(sif(b"x")[:100])
    with pytest.raises(Damaged, match="cut short"):
        bundles._checked(tmp_path / "short.sif")


@pytest.mark.parametrize(
    "name", ["my image.sif", "a(1).sif", "\u00fcbung.sif", "_a.sif", "-a.sif", ".a.sif", "a\n.sif"]
)
def test_a_sif_that_could_not_be_unpacked_is_refused_before_any_work(tmp_path, name):
    with pytest.raises(BadInput, match=r"--sif: .* is no name that a bundle can hold"):
        bundle(None, (), tmp_path / "b.tar", Silent(), sifs=(tmp_path / name,))
    with pytest.raises(BadInput):
        read_sums(f"{LINE}{INDEX}\n{LINE}sif/{name}\n".encode(), tmp_path)


def test_two_of_one_name_are_refused(tmp_path):
    twice = (tmp_path / "one" / "a.sif", tmp_path / "two" / "a.sif")
    with pytest.raises(BadInput, match=r"--sif: two of them are called a\.sif"):
        bundle(None, (), tmp_path / "b.tar", Silent(), sifs=twice)
    recipes = [tmp_path / folder / "mine.toml" for folder in ("one", "two")]
    for recipe in recipes:
        recipe.parent.mkdir()
        recipe.write_bytes((shipped("recipes") / "mpi-only.toml").read_bytes())
    with pytest.raises(BadInput, match="RECIPES: two of them are called mine,"):
        bundle(None, tuple(map(str, recipes)), tmp_path / "b.tar", Silent())


@pytest.fixture
def own(made):
    folder = made[0] / "config" / "toolkit" / "recipes"
    folder.mkdir(parents=True)
    return folder


def test_a_recipe_of_ones_own_stays_and_is_told(made, own):
    (own / "mine.toml").write_bytes(b"of my own")
    done = unbundle(made[0] / "bundle.tar", None, Silent())
    assert (done.recipes, done.kept) == ((), ("mine",))
    assert (own / "mine.toml").read_bytes() == b"of my own"
    told = CliRunner().invoke(command, ["unbundle", str(made[0] / "bundle.tar")], obj=QUIET)
    assert told.exit_code == 0
    assert f"kept: your own mine in {own}" in told.stderr
    (own / "mine.toml").unlink()
    done = unbundle(made[0] / "bundle.tar", None, Silent())
    assert (done.recipes, done.kept) == (("mine.toml",), ())


def test_a_lock_is_not_placed_beside_another_recipe_nor_over_a_lock_of_ones_own(made, own):
    folder, files, _ = made
    (folder / "lock").write_bytes(encoded(lock()))
    write(folder / "bundle.tar", {**files, "recipes/mine.lock.json": folder / "lock"}, Silent())
    (own / "mine.toml").write_bytes(b"of my own")
    assert unbundle(folder / "bundle.tar", None, Silent()).kept == ("mine",)
    assert [path.name for path in own.iterdir()] == ["mine.toml"]
    (own / "mine.toml").unlink()
    (own / "mine.lock.json").write_bytes(b"lock of my own")
    assert unbundle(folder / "bundle.tar", None, Silent()).kept == ("mine",)
    assert [path.read_bytes() for path in own.iterdir()] == [b"lock of my own"]


def test_a_lock_with_a_field_that_breaks_its_grammar_is_not_placed(made, own):
    folder, files, _ = made
    (folder / "lock").write_bytes(encoded(lock(epoch=-1)))
    write(folder / "bundle.tar", {**files, "recipes/mine.lock.json": folder / "lock"}, Silent())
    with pytest.raises(BadInput, match=r"recipes/mine\.lock\.json: epoch: expected a number"):
        unbundle(folder / "bundle.tar", None, Silent())
    assert list(own.iterdir()) == []
