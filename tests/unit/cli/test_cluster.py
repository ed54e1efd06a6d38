"""``toolkit cluster`` where it needs no engine."""

from click.testing import CliRunner

from toolkit.cli.main import cli


def test_every_command_shows_an_example():
    for verb in ("up", "status", "exec", "shell", "down"):
        shown = CliRunner().invoke(cli, ["cluster", verb, "--help"])
        assert f"Example: toolkit cluster {verb}" in shown.output


def test_help_lists_the_commands_without_an_engine(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    assert CliRunner().invoke(cli, ["cluster", "--help"]).exit_code == 0
