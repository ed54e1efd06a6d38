"""Print how many reported launches the engine predicts correctly: ``python -m tests.field [ID…]``."""

import sys

from tests.field.cases import calibration, can_be_graded, grade, outcomes_of, partly, read, table


def main(wanted: list[str]) -> None:
    """Print the answers for the ids ``wanted``, by default all answers whose grade is not ``right``.

    Print also the table of grades. Reports with ``aside``, which the rules' authors did not read, appear only
    in the table.
    """
    graded = tuple(map(grade, read()))
    for one in graded:
        case, said = one.case, one.said
        if case.aside or (case.id not in wanted if wanted else one.grade == "right"):
            continue
        print(f"{case.id}: {one.grade} (before: {case.before}); {case.mode} ended in {case.observed}")
        print(f"    said {said.shown} ({said.basis}): {said.why}")
        print(f"    findings: {', '.join(finding.id for finding in one.findings)}")
        if wanted:
            print(f"    modes: {outcomes_of(case)}")
    print(table(graded))
    print(calibration(graded))
    some = [case for case in read() if can_be_graded(case)]
    print(f"right from stated facts alone: {sum(partly(case)[1] for case in some)} of {len(some)}")


if __name__ == "__main__":
    main(sys.argv[1:])
