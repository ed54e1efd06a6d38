"""Make the diffs of `toolkit adapt` for tests/golden/adapt/*.py; running this module writes them to files."""

from pathlib import Path

from toolkit.job.adapt import adapt

FOLDER = Path(__file__).parents[3] / "golden" / "adapt"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


def made(name: str) -> str:
    result, _ = adapt(FOLDER / f"{name}.py")
    left = "".join(f"# left, line {one.line}: {one.what}\n" for one in result.left)
    return f"# by {result.program}\n{left}{result.diff}"


if __name__ == "__main__":
    for name in SCRIPTS:
        (FOLDER / f"{name}.diff").write_text(made(name))
