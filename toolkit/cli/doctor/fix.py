"""``toolkit doctor --fix``: write the change that makes a launch work, and show the change as a diff."""

import shlex
from pathlib import Path

import msgspec

from toolkit.cli.doctor import fixfile
from toolkit.cli.frame.say import say_json, say_text
from toolkit.cli.frame.styles import style_of_stdout
from toolkit.errors import CheckFailed
from toolkit.job.diagnosis import Diagnosis
from toolkit.launch.request.fix import FoundFix, find_fix, fix_of
from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Verdict
from toolkit.report.plain import one_line

DEFAULT = Path("fix.toml")


def command(diagnosis: Diagnosis, output: Path, place: list[str], *, as_json: bool) -> None:
    """Find a change that makes the launch work, write the change to a file, and show a diff.

    Args:
        diagnosis: the prediction for the launch.
        output: the file to write.
        place: the options with which ``toolkit launch`` connects to the cluster.
        as_json: whether to print JSON instead of text.

    Raises:
        CheckFailed: if toolkit finds neither options nor another image with which the launch works.
        BadInput: if the output file exists and ``toolkit doctor --fix`` did not write this file.
    """
    wanted = diagnosis.request
    found = find_fix(diagnosis.host, diagnosis.image, wanted.request, wanted.site)
    if found is None:
        _write_recipe(diagnosis, output, as_json=as_json)
    elif found.is_empty:
        nothing: dict[str, object] = {"kind": None, "file": None, "diff": ""}
        _tell(as_json, nothing, "Nothing to fix: the launch is predicted to work.")
    else:
        _write_options(diagnosis, found, output, place, as_json=as_json)


def _write_options(
    diagnosis: Diagnosis, found_fix: FoundFix, output: Path, place: list[str], *, as_json: bool
) -> None:
    """Write the options that make the launch work, and show how these options change the launch command."""
    from toolkit.launch.jobscript.plan import runtime_of
    from toolkit.report.fix import difference, fix_text, launch_lines

    host, image, request = diagnosis.host, diagnosis.image, diagnosis.request.request
    fix = fix_of(found_fix, host, image, diagnosis.verdict)
    words = ["toolkit", "launch", "--fix", str(output), "--image", image.path, "--nodes", str(request.nodes)]
    words += ["--ranks-per-node", str(request.ranks_per_node)] if request.ranks_per_node > 1 else []
    use = f"{shlex.join([*words, *place])} -- COMMAND"
    runtime = runtime_of(host)
    before = launch_lines(found_fix.plan, request, runtime)
    after = launch_lines(found_fix.fixed_plan, request, runtime)
    changed = fixfile.write(output, fix_text(fix, f"Use: toolkit launch --fix {output.name} …"))
    value = {
        "kind": "launch",
        "file": str(output),
        "diff": difference(before, after, output.name),
        "fix": msgspec.to_builtins(fix),
        "before": {"mode": found_fix.prediction.mode, "outcome": found_fix.prediction.outcome},
    }
    shown = difference(before, after, output.name, style_of_stdout())
    _tell(as_json, value, f"{shown}\n\n{_written(output, changed=changed)}\nNext\n  {one_line(use)}")


def _write_recipe(diagnosis: Diagnosis, output: Path, *, as_json: bool) -> None:
    """Write a recipe of an image that is predicted to work, and show how this recipe differs from the given
    image's recipe.

    Raises:
        CheckFailed: if toolkit predicts that no recipe works, or the given image was already built from the
            recipe that toolkit predicts to work.
    """
    from toolkit.image.locks.match_recipe import match_recipe
    from toolkit.report.fix import difference, recipe_text

    recipe = match_recipe(diagnosis.host, diagnosis.image, diagnosis.request.request)
    earlier = _recipe_of(diagnosis.image)
    lines = recipe_text(recipe, f"Use: toolkit image build {output}") if recipe else ""
    body = lines.splitlines()[1:]
    if recipe is None or _without_title(body) == _without_title(earlier):
        raise _no_fix(diagnosis.verdict)
    changed = fixfile.write(output, lines)
    value = {
        "kind": "recipe",
        "file": str(output),
        "diff": difference(earlier, body, output.name),
        "recipe": msgspec.to_builtins(recipe),
    }
    shown = difference(earlier, body, output.name, style_of_stdout())
    file = f"./{output}" if output.name == str(output) else str(output)
    build = one_line(shlex.join(["toolkit", "image", "build", file]))
    why = "Options cannot fix this launch; another image is predicted to work:"
    _tell(as_json, value, f"{why}\n\n{shown}\n\n{_written(output, changed=changed)}\nNext\n  {build}")


def _without_title(lines: list[str]) -> list[str]:
    """Return the lines of a recipe without the title, because the title does not affect the build."""
    return [line for line in lines if not line.startswith("title")]


def _no_fix(verdict: Verdict) -> CheckFailed:
    """Return the error for a launch that toolkit cannot fix. The hint lists the unknown facts, if any."""
    missing = dict.fromkeys(name for prediction in verdict.predictions for name in prediction.missing)
    return CheckFailed(
        "toolkit found neither options nor another image with which this launch works",
        fix=f"probe the cluster with `toolkit probe`, because these facts are unknown: {', '.join(missing)}"
        if missing
        else "see the reasons: `toolkit doctor IMAGE`",
    )


def _recipe_of(image: ImageFacts) -> list[str]:
    """Return the lines of the image's recipe. Return an empty list if toolkit does not find the recipe."""
    from toolkit.errors import ToolkitError
    from toolkit.image.locks.recipe import load
    from toolkit.report.fix import recipe_text

    name = image.stack.get("recipe") if image.stack else None
    if not isinstance(name, str):
        return []
    try:
        return recipe_text(load(name).recipe, "").splitlines()[1:]
    except ToolkitError:  # the recipe is not on this machine
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
