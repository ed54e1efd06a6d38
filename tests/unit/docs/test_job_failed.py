"""Test that the example of the page about failed jobs is what `toolkit explain` prints."""

from textwrap import dedent

from docs.generate.outside import ROOT
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output
from toolkit.model.finding import ADVICE
from toolkit.report.explained import explanation_lines

PAGE = (ROOT / "docs" / "howto" / "job-failed.md").read_text("utf-8")


def block_after(sentence: str) -> str:
    lines = PAGE.partition(sentence)[2].splitlines()[1:]
    end = next(number for number, line in enumerate(lines) if line and line[0] != " ")
    return dedent("\n".join(lines[:end])).strip("\n")


def test_the_example_is_what_toolkit_explain_prints():
    log = block_after("The file `output.log` contains:")
    said = "\n".join(explanation_lines(explain_output(Output(log)), width=80))
    assert block_after("`toolkit explain output.log` prints:") == said.strip("\n")


def test_the_page_says_who_has_to_act_for_each_advice():
    assert all(f"| {advice} |" in PAGE for advice in ADVICE.values())
