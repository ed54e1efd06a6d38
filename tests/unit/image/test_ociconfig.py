"""Test how toolkit reads an image's configuration from the Docker engine, and which time it writes into a
SIF.
"""

from types import SimpleNamespace

import msgspec
import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.image.sifs.ociconfig import epoch, read_config


def image(created="2026-01-02T03:04:05.678901234Z", **config):
    return SimpleNamespace(id="sha256:1", attrs={"Config": config, "Created": created})


def test_host_names_are_left_out_and_labels_are_sorted():
    found = read_config(
        image(Hostname="here", Image="sha256:2", Cmd=None, Env=["A=b"], Labels={"z": "1", "a": "2"})
    )
    assert msgspec.json.encode(found) == b'{"Env":["A=b"],"Labels":{"a":"2","z":"1"}}'


def test_a_configuration_of_another_shape_is_refused():
    with pytest.raises(BadInput, match="description of this image"):
        read_config(image(Env={"A": "b"}))


@every_row(
    ("label", "variable", "expected"),
    [
        ("2026-11-21T14:28:34+00:00", "5", 1795271314),
        ("2026-11-21t14:28:34z", "", 1795271314),
        ("2026-11-21", "5", 5),
        ("", "", 1767323045),
        ("no date", "", 1767323045),
        ("1900-01-01T00:00:00Z", "", 0),
        ("", "99999999999", (1 << 32) - 1),
    ],
)
def test_the_time_is_the_labels_then_the_variables_then_the_images(label, variable, expected):
    source = image(Labels={"org.opencontainers.image.created": label, "toolkit.lock": "1"})
    assert epoch(source, read_config(source), {"SOURCE_DATE_EPOCH": variable}) == expected


def test_the_label_of_an_image_of_others_may_be_older_than_its_files_and_is_not_taken():
    source = image(Labels={"org.opencontainers.image.created": "2020-01-01T00:00:00Z"})
    assert epoch(source, read_config(source), {}) == 1767323045


def test_an_image_without_any_date_gets_the_first_second():
    source = image(created="0001-01-01T00:00:00Z")
    assert epoch(source, read_config(source), {}) == 0


def test_a_variable_that_is_no_number_is_refused():
    with pytest.raises(BadInput, match="SOURCE_DATE_EPOCH=yesterday"):
        epoch(image(), read_config(image()), {"SOURCE_DATE_EPOCH": "yesterday"})
