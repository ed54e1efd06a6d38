import sys

from tests.benchmarks.timeline import run


def test_the_measurement_runs_and_says_what_it_took(capfd, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "--megabytes", "2"])
    assert run.main() == 0
    assert "2 MB in " in capfd.readouterr().out
