"""Test that each table test checks all rows of its data; the test counts the rows in the data files."""

import re
from pathlib import Path

import click

from tests.matrix import record
from tests.unit.docs import test_commands, test_findings, test_schemas
from tests.unit.engine import (
    fixtures,
    test_fixes,
    test_matrix,
    test_reported_first,
    test_rule_coverage,
    test_rule_pages,
)
from tests.unit.engine.logs import test_explain
from tests.unit.launch import test_local, test_site_scripts
from tests.unit.launch.jobscript import test_script
from tests.unit.matrix import test_truth
from tests.unit.probe import test_probe
from tests.unit.program.adapt.golden import FOLDER as ADAPTED
from tests.unit.tables import every_row, rows_of
from toolkit.cli.main import cli
from toolkit.engine.registry import RULES

ROOT = Path(__file__).parents[2]


def marks(path: str, pattern: str) -> int:
    return len(re.findall(pattern, (ROOT / path).read_text("utf-8"), re.MULTILINE))


def files(pattern: str) -> int:
    return len(list(ROOT.glob(pattern)))


SIGNATURES = marks("recipes/knowledge/signatures.toml", r"^\[\[signature\]\]$")
ALONE = SIGNATURES - marks("recipes/knowledge/signatures.toml", r"^then = ")


def commands(command: click.Command) -> int:
    context = click.Context(command)
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    below = [command.get_command(context, name) for name in names]
    return 1 + sum(commands(one) for one in below if one and not one.hidden)


COMMANDS = commands(cli)
HEALTHY = files("tests/unit/engine/healthy/*.txt")
POSTED = marks("tests/unit/engine/reported.txt", "^== ")
RULE_FILES = files("toolkit/engine/rules/[a-z]*.py")
JOBS = files("tests/golden/job-*.sh")
SITES = files("tests/golden/scripts/*.sh")
CASES = [sum(map(len, table.values())) for table in fixtures.tables()]
ROWS = [
    (test_explain.test_a_signature_is_what_its_sample_means_before_all_others, SIGNATURES),
    (test_explain.test_the_sample_is_recognised_in_the_output_of_a_labelled_rank, 5 * SIGNATURES),
    (test_explain.test_no_pattern_takes_long_on_a_hostile_line, 7 * SIGNATURES),
    (test_explain.test_a_signature_is_tied_to_a_rule_or_to_none_and_says_all, SIGNATURES),
    (test_explain.test_every_pattern_has_a_word_that_is_looked_for_before_it, SIGNATURES),
    (test_explain.test_lines_that_look_alike_do_not_hide_the_one_that_tells, ALONE),
    (
        test_explain.test_nothing_is_recognised_in_output_that_means_no_harm,
        HEALTHY,
    ),
    (test_findings.test_a_line_of_output_is_on_the_page_of_what_it_tells, SIGNATURES),
    (test_findings.test_a_rule_has_a_page_and_a_line_in_the_index, len(RULES)),
    (
        test_reported_first.test_the_first_finding_is_what_was_wrong,
        POSTED,
    ),
    (
        test_matrix.test_a_measured_cell_is_predicted_as_it_happened,
        marks("tests/matrix/cells.jsonl", "^.") - sum(test_matrix.NOT_LAUNCHES.values()),
    ),
    (test_rule_coverage.test_a_rule_fires_and_says_on_what_it_rests, CASES[0]),
    (test_rule_coverage.test_what_nobody_measured_is_told_as_not_decided_and_no_fault, CASES[0]),
    (test_rule_coverage.test_a_rule_is_silent_where_all_is_known_and_nothing_is_wrong, CASES[1]),
    (test_rule_coverage.test_a_rule_says_which_facts_it_lacks, CASES[2]),
    (test_rule_coverage.test_a_rule_is_described_and_its_facts_exist, len(RULES)),
    (
        test_rule_coverage.test_the_cases_of_the_rules_reach_every_branch_of_their_code,
        RULE_FILES,
    ),
    (test_rule_pages.test_a_page_tells_what_a_person_needs, len(RULES)),
    (test_fixes.test_a_rule_that_knows_no_launch_names_no_way_but_as_one_that_may_work, len(RULES)),
    (test_commands.test_nothing_of_the_help_is_left_unread, COMMANDS),
    (test_commands.test_a_page_has_every_option_with_its_meaning, COMMANDS - 1),
    (test_commands.test_an_example_can_be_copied_from_the_help_of_a_terminal, COMMANDS),
    (test_script.test_script_is_the_golden_one, JOBS),
    (test_script.test_a_shell_takes_the_golden_script, JOBS),
    (
        test_site_scripts.test_the_script_of_a_site_is_the_one_that_was_read,
        SITES,
    ),
    (test_site_scripts.test_shells_take_it, SITES),
    (test_local.test_script_is_the_golden_one, files("tests/golden/local-*.sh")),
    (test_local.test_a_shell_takes_the_golden_script, files("tests/golden/local-*.sh")),
    (test_probe.test_no_recorded_probe_names_a_person, files("tests/evidence/*.txt")),
    (test_schemas.test_shipped_recipes_fit, files("recipes/*.toml")),
    (test_schemas.test_shipped_locks_fit, files("recipes/*.lock.json")),
    (test_schemas.test_shipped_sites_fit, files("slurm/sites/*.toml")),
    (test_truth.test_the_inspector_reads_the_mpi_that_the_program_loads, len(record.load().images) - 4),
    (test_truth.test_a_program_whose_mpi_is_missing_needs_the_library_that_the_loader_misses, 4),
]
"""Table tests, each with the number of rows in its data."""


@every_row(("test", "count"), ROWS)
def test_a_table_has_all_rows_of_its_data(test, count):
    assert count > 0
    assert len(rows_of(test)) == count


def test_every_recorded_launch_is_replayed_once_by_its_flavour():
    """Two tests of test_truth.py together check each recorded launch once."""
    cells = record.load().cells
    walked = [
        cell.name
        for part in (test_truth.CELLS, test_truth.HELD_OUT)
        for flavour in test_truth.flavours(part)
        for cell in test_truth.of(flavour, part)
    ]
    assert len(cells) >= 4991
    assert sorted(walked) == sorted(cell.name for cell in cells)


def test_no_golden_file_is_left_out():
    """The golden scripts of jobs, of local runs and of sites are rows of table tests.

    tests/unit/cli checks the golden Dockerfile, tests/unit/program/adapt checks its golden files, and
    the tests of job scripts check the golden relay.
    """
    folder = ROOT / "tests" / "golden"
    kept = {file.relative_to(folder).as_posix() for file in folder.rglob("*.*") if file.parent != ADAPTED}
    golden = (test_script.test_script_is_the_golden_one, test_local.test_script_is_the_golden_one)
    checked = {row.values["name"] for test in golden for row in rows_of(test)}
    sites = rows_of(test_site_scripts.test_the_script_of_a_site_is_the_one_that_was_read)
    checked |= {f"scripts/{row.values['name']}.sh" for row in sites}
    assert kept - checked == {"tf2.15-cpu.Dockerfile", test_script.RELAY}
    assert checked <= kept
