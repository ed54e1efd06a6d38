"""Run the trainers of this checkout in containers of an image, for tests with PyTorch and JAX."""

import json
from pathlib import Path

from tests.services.program import ROOT, toolkit
from tests.services.workers import one_at_a_time
from toolkit.run.docker.containers import Box, run_once

SCRIPTS = Path(__file__).parent / "small"


class TrainerBox:
    """Runs shell commands in the image of a recipe; the commands see the folder ``out`` as ``/out``."""

    def __init__(self, engine, recipe, out, **env):
        with one_at_a_time(recipe):
            toolkit("image", "build", recipe, timeout=3600)
        self._engine, self._recipe, self.out, self._env = engine, recipe, out, env

    def __call__(self, lines, data=None, timeout=600):
        binds = {
            str(ROOT / "toolkit"): "/opt/toolkit/lib/toolkit:ro",
            str(SCRIPTS): "/test:ro",
            str(ROOT / "docs" / "examples"): "/example:ro",
            str(self.out): "/out",
            **({str(data): "/data:ro"} if data else {}),
        }
        env = {"PYTHONDONTWRITEBYTECODE": "1", **self._env}
        # Gloo looks up the host name, which does not resolve in a container without a network.
        named = 'echo "127.0.0.1 $(hostname)" >> /etc/hosts'
        box = Box(f"toolkit/{self._recipe}:latest", binds=binds, env=env, memory=6 << 30, timeout=timeout)
        done = run_once(self._engine, box, ("sh", "-c", f"{named}\n{lines}"))
        return done.status, "\n".join(done.lines)

    def records(self, name):
        lines = (self.out / name / "metrics.jsonl").read_text().splitlines()
        return [one for one in map(json.loads, lines) if one["record"] != "start"]
