"""Test ``toolkit notebook``: Jupyter runs on a compute node that a browser reaches only through a tunnel."""

import contextlib
import http.client
import json
import shlex
import signal
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import pytest

from tests.services.jobs import last_record, on_login
from tests.services.program import ROOT, toolkit
from tests.services.workers import STATE
from toolkit.image.inspect import inspect

JUPYTER = "jupyter-server==2.17.0"


@pytest.fixture(scope="module")
def packages(cluster, training_sif, tmp_path_factory):
    """Install Jupyter for the image's Python into a folder on the cluster, as docs/notebook.md says."""
    folder, there = tmp_path_factory.mktemp("jupyter"), f"/work/{cluster.user}/jupyter"
    python = ".".join((inspect(training_sif).python or "").split(".")[:2])
    install = [
        str(Path(sys.executable).with_name("uv")),
        "pip",
        "install",
        "--quiet",
        "--target",
        str(folder),
    ]
    platform = ["--python-version", python, "--python-platform", "x86_64-manylinux_2_28"]
    subprocess.run([*install, *platform, "--only-binary", ":all:", JUPYTER], check=True, timeout=600)
    packed = subprocess.run(["tar", "c", "-C", str(folder), "."], capture_output=True, check=True).stdout
    ssh = ["ssh", "-F", str(cluster.ssh_config), "login", f"mkdir -p {there} && tar x -C {there}"]
    subprocess.run(ssh, input=packed, check=True, timeout=120)
    return there


@contextlib.contextmanager
def opened(*words):
    process = subprocess.Popen(
        toolkit.words("notebook", "--json", *words),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line, process.communicate(timeout=60)
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def closed(process):
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    return process.returncode, said


def status(url, token=None):
    address = urllib.parse.urlsplit(url).netloc
    headers = {"Authorization": f"token {token}"} if token is not None else {}
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request("GET", "/api/status", headers=headers)
        answer = connection.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if answer.status == 200 else said
    except http.client.HTTPException as error:  # the tunnel is open, but Jupyter does not answer yet
        raise OSError(str(error)) from error
    finally:
        connection.close()


# The search reads the token from standard input, or it would find its own command line.
LOOK = """
import glob, sys
token = sys.stdin.readline().strip().encode()
for name in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
    try:
        said = open(name, "rb").read()
    except OSError:
        continue
    if token in said:
        print(name, said[:200])
"""


def holders(cluster, node, token):
    """Return the processes on a node that have the token in their arguments or environment."""
    words = ["ssh", "-F", str(cluster.ssh_config), node, shlex.join(["python3", "-c", LOOK])]
    done = subprocess.run(words, input=f"{token}\n", capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_one_url_leads_to_jupyter_on_a_node_and_ctrl_c_ends_it_all(cluster, on, packages):
    with opened(*on, "--packages", packages) as (process, told):
        assert told["schema"] == "toolkit.notebook/1"
        assert told["host"] in {"node1", "node2"}
        assert told["url"].startswith("http://127.0.0.1:")
        token = told["url"].partition("token=")[2]
        code, answer = status(told["url"], token)
        assert (code, answer["kernels"]) == (200, 0)
        assert status(told["url"])[0] == 403
        assert status(told["url"], "x" * len(token))[0] == 403
        # Only one file has the token, and only its owner can read the file.
        folder = last_record()["spec"]["directory"]
        assert on_login(cluster, f"stat -c '%a %U' {folder} {folder}/token").split() == [
            "700",
            "ada",
            "600",
            "ada",
        ]
        pieces = on_login(
            cluster, f"cat {folder}/output.log {folder}/job.sh; cat {folder}/*.py {folder}/*.sh"
        )
        assert "Jupyter Server" in pieces
        assert token not in pieces
        assert [holders(cluster, node, token) for node in ("login", told["host"])] == ["", ""]
        kept = STATE / "toolkit" / "jobs" / told["key"]
        assert not any(token in file.read_text() for file in kept.iterdir())
        # Jupyter listens only at the loopback address of its node.
        listening = on_login(cluster, f"ssh {told['host']} ss -Hltn")
        port = json.loads(on_login(cluster, f"cat {folder}/notebook.json"))["port"]
        assert [x.split()[3] for x in listening.splitlines() if x.split()[3].endswith(f":{port}")] == [
            f"127.0.0.1:{port}"
        ]
        code, said = closed(process)
    assert code == 130
    assert "the notebook is closed; job" in said
    assert json.loads(toolkit("jobs", "show", told["key"], "--json").stdout)["state"] == "cancelled"
    assert "notebook.py" not in on_login(cluster, f"ssh {told['host']} ps -eo args")
    assert "relay" not in on_login(cluster, f"ssh {told['host']} ps -eo args; ps -eo args | grep '[s]run'")
    left = on_login(cluster, f"ls {folder}").split()
    assert not {"token", "notebook.json", "jupyter"} & set(left)
    with pytest.raises(OSError):
        status(told["url"], token)


def test_a_kept_notebook_is_come_back_to_and_its_tunnel_ends_with_the_job(cluster, on, packages):
    with opened(*on, "--packages", packages, "--keep") as (process, told):
        code, said = closed(process)
    assert code == 130
    assert f"`toolkit notebook --attach {told['key']}`" in said
    with opened("--attach", told["key"]) as (process, again):
        assert again["key"] == told["key"]
        assert status(again["url"], again["url"].partition("token=")[2])[0] == 200
        toolkit("jobs", "cancel", told["key"])
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said
    ended = toolkit("notebook", "--attach", told["key"], ok=False)
    assert ended.returncode == 3
    assert "has ended" in ended.stderr


def test_an_image_without_jupyter_is_told_with_what_to_do(on):
    done = toolkit("notebook", *on, ok=False)
    assert done.returncode == 1
    assert "does not contain Jupyter" in done.stderr
    assert "--packages" in done.stderr


def test_a_lost_far_end_is_started_again(cluster, on, packages):
    with opened(*on, "--packages", packages) as (_, told):
        token = told["url"].partition("token=")[2]
        assert status(told["url"], token)[0] == 200
        on_login(cluster, "pkill -f relay.sh")
        deadline = time.monotonic() + 60
        code = 0
        while code != 200 and time.monotonic() < deadline:
            time.sleep(1)
            with contextlib.suppress(OSError):
                code = status(told["url"], token)[0]
        assert code == 200


def test_a_port_that_is_taken_is_told_before_any_job(on):
    with toolkit_port() as port:
        before = toolkit("jobs", "list").stdout
        done = toolkit("notebook", *on, "--port", str(port), ok=False)
    assert done.returncode == 2
    assert f"--port {port}" in done.stderr
    assert toolkit("jobs", "list").stdout == before


@contextlib.contextmanager
def toolkit_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
