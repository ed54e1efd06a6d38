import json

from click.testing import CliRunner

from toolkit.cli.data import command


def test_data_sets_are_listed_for_people_and_programs():
    shown = CliRunner().invoke(command, ["list"]).stdout
    assert "mnist" in shown
    listed = json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout)
    assert listed["schema"] == "toolkit.datasets/1"
    assert [one["name"] for one in listed["datasets"]] == ["cifar10", "fashion-mnist", "mnist"]
