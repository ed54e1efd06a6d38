"""Test that a diff shows only the changes of a fix."""

from tests.unit.engine.examples import with_
from toolkit.model.fix import SCHEMA, Fix, LaunchFix
from toolkit.model.prediction import Plan, Request
from toolkit.report.fix import MARK, difference, fix_text, launch_lines

PLAIN = Plan(mode="srun-pmix", launcher=("srun",))
MORE = with_(PLAIN, launcher=("srun", "--mpi=pmix"), unset=("A", "B"), env={"X": "1 2"}, binds=("/tmp",))


def lines(plan):
    return launch_lines(plan, Request(), "apptainer")


def test_every_option_and_variable_has_a_line_and_the_command_its_own():
    assert lines(PLAIN)[0] == "srun"
    assert lines(PLAIN)[-3:] == ["apptainer exec", "IMAGE", "COMMAND"]
    shown = lines(MORE)
    for line in ("    --mpi=pmix", "    -u A", "    -u B", "    --bind /tmp", "    'X=1 2'", "COMMAND"):
        assert line in shown


def test_the_diff_has_what_changes_and_colours_only_if_asked():
    text = difference(lines(PLAIN), lines(MORE), "fix.toml")
    assert text.startswith("--- without fix.toml\n+++ with fix.toml\n")
    assert {line for line in text.splitlines()[3:] if line[0] in "+-"} == {
        "+    --mpi=pmix",
        "+env",
        "+    -u A",
        "+    -u B",
        "+    --bind /tmp",
        "+    'X=1 2'",
    }
    assert "<good>" in difference(lines(PLAIN), lines(MORE), "f", lambda text, style: f"<{style}>{text}")


def test_a_file_of_a_fix_begins_with_its_mark_in_one_line():
    fix = Fix(schema=SCHEMA, launch=LaunchFix(mode="srun-pmix"), image="a\nb")
    text = fix_text(fix, "use\nit")
    assert text.splitlines()[0] == f"{MARK}: changes to a launch. use it"
    assert '"a\\nb"' in text
