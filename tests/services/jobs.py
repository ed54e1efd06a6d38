"""Start jobs on the virtual cluster, run commands over SSH, and close SSH connections."""

import json
import subprocess

from tests.services.program import toolkit
from toolkit.cluster import use

# The first run exits with status 75, like a trainer that stopped after a checkpoint. The next run succeeds.
STOPS_ONCE = """
mark="$TOOLKIT_JOB_DIR/mark"
if [ -e "$mark" ]; then echo second; else touch "$mark"; echo first; exit 75; fi
"""


def launched(on, *words, ok=True, **more):
    return toolkit("launch", *on, *words, ok=ok, **more)


def in_background(on, line, *words):
    done = toolkit("launch", *on, "--no-follow", "--json", *words, "--", "sh", "-c", line)
    return json.loads(done.stdout)


def record_of(key):
    return json.loads(toolkit("jobs", "show", key, "--json").stdout)


def last_record():
    return json.loads(toolkit("jobs", "list", "--json").stdout)["jobs"][-1]


def on_login(cluster, line, stdin="", timeout=120):
    words = ["ssh", "-F", str(cluster.ssh_config), "login", line]
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=timeout)
    return done.stdout + done.stderr


def as_root(cluster, *words):
    said = bytearray()
    status = use.execute(cluster, "login", "root", words, lambda out, err: said.extend(out + err))
    return status, said.decode()


def cut(cluster):
    """Kill all SSH sessions of the user on the cluster, as a broken network would close them."""
    as_root(cluster, "pkill", "-KILL", "-f", "^sshd-session: ada")
