"""Mount file systems on a node of a virtual cluster, whose own root user may not mount."""

import subprocess


def on_node(container: str, *words: str) -> str:
    """Run ``mount`` or ``umount`` in the mount namespace of a container, and return its error."""
    shown = ("docker", "inspect", "--format", "{{.State.Pid}} {{.Image}}", container)
    pid, image = subprocess.run(shown, check=True, capture_output=True, text=True).stdout.split()
    rights = ("--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE", "--security-opt", "seccomp=unconfined")
    more = ("--security-opt", "apparmor=unconfined", "--pid", "host", "--network", "none", "--memory", "64m")
    enter = ("--entrypoint", "nsenter", image, "--target", pid, "--mount", *words)
    done = subprocess.run(("docker", "run", "--rm", *rights, *more, *enter), capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr or done.stdout or f"status {done.returncode}")
