import sys

from tests.benchmarks.explain import run


def test_the_measurement_explains_each_kind_of_output_and_says_what_it_took(capfd, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "--megabytes", "1"])
    assert run.main() == 0
    told = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == ["steps", "words", "failures"]
    assert all(line.endswith("root line") for line in told)
