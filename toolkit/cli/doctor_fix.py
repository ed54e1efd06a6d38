"""``toolkit doctor --fix``: write the change that makes a launch work, and show it as a diff."""

import shlex
from pathlib import Path

import msgspec

from toolkit.cli import fixfile
from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.frame.styles import style_of_stdout
from toolkit.errors import CheckFailed
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Request, Verdict
from toolkit.model.site import Site
from toolkit.report.plain import one_line

DEFAULT = Path("fix.toml")


def command(
    host: HostFacts,
    image: ImageFacts,
    request: Request,
    verdict: Verdict,
    output: Path,
    place: list[str],
    site: Site | None = None,
    *,
    as_json: bool,
) -> None:
    """Find the smallest change that works, write it and show it as a diff.

    Raises:
        CheckFailed: if neither options nor another image make the launch work.
        BadInput: if the file exists and this command did not write it.
    """
    from toolkit.launch.jobscript.plan import runtime_of
    from toolkit.launch.request.fix import find_fix, fix_of
    from toolkit.report.fix import difference, fix_text, launch_lines

    found = find_fix(host, image, request, site)
    if found is None:
        _recipe(host, image, request, verdict, output, as_json=as_json)
        return
    if found.nothing:
        _tell(
            as_json,
            {"kind": None, "file": None, "diff": ""},
            "Nothing to fix: the launch is predicted to work.",
        )
        return
    fix = fix_of(found, host, image, verdict)
    nodes = ["--nodes", str(request.nodes)]
    ranks = ["--ranks-per-node", str(request.ranks_per_node)] if request.ranks_per_node > 1 else []
    words = ["toolkit", "launch", "--fix", str(output), "--image", image.path, *nodes, *ranks, *place]
    use = f"{shlex.join(words)} -- COMMAND"
    runtime = runtime_of(host)
    before = launch_lines(found.plan, request, runtime)
    after = launch_lines(found.after, request, runtime)
    changed = fixfile.write(output, fix_text(fix, f"Use: toolkit launch --fix {output.name} …"))
    value = {
        "kind": "launch",
        "file": str(output),
        "diff": difference(before, after, output.name),
        "fix": msgspec.to_builtins(fix),
        "before": {"mode": found.before.mode, "outcome": found.before.outcome},
    }
    shown = difference(before, after, output.name, style_of_stdout())
    _tell(as_json, value, f"{shown}\n\n{_written(output, changed=changed)}\nNext\n  {one_line(use)}")


def _recipe(
    host: HostFacts,
    image: ImageFacts,
    request: Request,
    verdict: Verdict,
    output: Path,
    *,
    as_json: bool,
) -> None:
    from toolkit.image.locks.match_recipe import match_recipe
    from toolkit.report.fix import difference, recipe_text

    recipe = match_recipe(host, image, request)
    earlier = _recipe_of(image)
    lines = recipe_text(recipe, f"Use: toolkit image build {output}") if recipe else ""
    body = lines.splitlines()[1:]
    if recipe is None or [x for x in body if not x.startswith("title")] == [
        x for x in earlier if not x.startswith("title")
    ]:
        missing = [name for p in verdict.predictions for name in p.missing]
        raise CheckFailed(
            "neither options nor an image of toolkit make this launch work",
            fix=f"probe these facts first: {', '.join(dict.fromkeys(missing))}"
            if missing
            else "see the reasons: toolkit doctor IMAGE",
        )
    changed = fixfile.write(output, lines)
    value = {
        "kind": "recipe",
        "file": str(output),
        "diff": difference(earlier, body, output.name),
        "recipe": msgspec.to_builtins(recipe),
    }
    shown = difference(earlier, body, output.name, style_of_stdout())
    build = shlex.join(
        ["toolkit", "image", "build", f"./{output}" if output.name == str(output) else str(output)]
    )
    why = "Options cannot fix this launch; another image is predicted to work:"
    _tell(
        as_json, value, f"{why}\n\n{shown}\n\n{_written(output, changed=changed)}\nNext\n  {one_line(build)}"
    )


def _recipe_of(image: ImageFacts) -> list[str]:
    """Return the recipe that the image was built from, as lines; empty for an image without a recipe."""
    from toolkit.errors import ToolkitError
    from toolkit.image.locks.recipe import load
    from toolkit.report.fix import recipe_text

    name = image.stack.get("recipe") if image.stack else None
    if not isinstance(name, str):
        return []
    try:
        return recipe_text(load(name).recipe, "").splitlines()[1:]
    except ToolkitError:  # this machine does not have the recipe
        return []


def _written(file: Path, *, changed: bool) -> str:
    if not changed:
        return one_line(f"{file} is up to date.")
    return one_line(f"Wrote {file}.")


def _tell(as_json: bool, value: dict[str, object], text: str) -> None:
    if as_json:
        value = {"schema": "toolkit.fixed/1", **value}
        say_json(value, indent=True)
    else:
        say_text(text)
