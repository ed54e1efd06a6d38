"""Scripts that were not written for toolkit, and their diffs by adapt; running this writes the diffs."""

from pathlib import Path

from toolkit.job.adapt import adapt

FOLDER = Path(__file__).parents[3] / "golden" / "adapt"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


def made(name: str) -> str:
    """Return the diff of a script, followed by the lines that adapt left unchanged."""
    result, _ = adapt(FOLDER / f"{name}.py")
    left = "".join(f"# left, line {one.line}: {one.what}\n" for one in result.left)
    return f"# by {result.program}\n{left}{result.diff}"


if __name__ == "__main__":
    for name in SCRIPTS:
        (FOLDER / f"{name}.diff").write_text(made(name))
