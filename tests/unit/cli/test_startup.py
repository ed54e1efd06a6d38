"""Test that toolkit's start makes few file-system calls, counted by strace, because shared file systems are
slow.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.unit.tables import every_row

FILE_SYSTEM_CALLS = 800


@every_row("words", [["--help"], ["--version"]])
def test_help_stays_within_the_budget_of_file_system_calls(tmp_path, words):
    strace = shutil.which("strace")
    assert strace, "strace counts the calls; make test installs it"
    trace = tmp_path / "trace"
    program = Path(sys.executable).with_name("toolkit")
    subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL)  # compiles changed modules
    subprocess.run(
        [strace, "-f", "-qq", "-e", "trace=%file", "-o", trace, program, *words],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    calls = trace.read_text().splitlines()
    assert 100 < len(calls) <= FILE_SYSTEM_CALLS


def test_help_imports_nothing_heavy_and_writes_nothing(tmp_path):
    heavy = {
        "docker",
        "fabric",
        "jinja2",
        "matplotlib",
        "msgspec",
        "paramiko",
        "rich",
        "spython",
        "tensorflow",
    }
    code = f"""
import sys
from toolkit.cli.main import main
try:
    main(["--help"])
except SystemExit:
    pass
print(sorted({heavy} & set(sys.modules)))
"""
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines()[-1] == "[]"
    assert list(tmp_path.iterdir()) == []


def test_a_launch_loads_what_only_other_commands_need_in_no_case():
    code = """
import sys
import toolkit.cli.launch, toolkit.job.submit, toolkit.job.sources, toolkit.job.prepare
import toolkit.job.running.follow
import toolkit.job.places, toolkit.run.remote.ssh, toolkit.cluster.access
unneeded = {"docker", "packaging.pylock", "requests", "yaml", "jinja2", "toolkit.image.locks.lock",
    "toolkit.image.software.describe", "toolkit.engine.logs.explanation", "toolkit.image.trust.verify"}
print(sorted(unneeded & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
