"""Kill the child processes of toolkit if a SIGKILL kills toolkit.

A small shell process reads from a pipe, and toolkit holds the pipe's write end. When toolkit exits, the
kernel closes the pipe. The shell then kills every process session that toolkit registered and did not
unregister. ``PR_SET_PDEATHSIG`` (prctl(2)) is not enough, because its signal does not reach grandchildren. A
child would also get this signal too early: when the *thread* that started the child exits.
"""

import contextlib
import os
import threading

_SCRIPT = r"""
live=' '
while read -r what session; do
    case $what in
        +) live="$live$session " ;;
        -) live="${live%% $session *} ${live#* $session }" ;;
    esac
done
[ "$live" != ' ' ] || exit 0
signal() {
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        number=${stat#/proc/}
        set -- ${line##*) }
        case $live in *" $4 "*) kill -s "$signal" "${number%/stat}" ;; esac
    done
}
signal=TERM; signal
sleep 1
signal=KILL; signal
"""
"""The script of the shell. Field 6 of /proc/PID/stat is the session ID of a process (proc_pid_stat(5)). The
script removes the first two fields of the line, so field 6 becomes ``$4``.
"""

_PATH = "/usr/bin:/bin"


class Guard:
    """Registers process sessions with the shell. If a signal kills this process, the shell kills the
    sessions.

    If this process is killed between the start of a child and :meth:`watch`, the child continues to run. To
    shorten this interval to one system call, call :meth:`prepare` before the start of the child.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._pipe = -1

    def prepare(self) -> None:
        """Start the shell, unless this process has already started it. Call this method before the start of a
        child process.
        """
        with self._lock:
            if self._owner != os.getpid():  # after a fork, the pipe belongs to the parent process
                self._pipe, self._owner = _start_guard(), os.getpid()

    def watch(self, session: int) -> None:
        """Register a process session, which the shell kills if this process exits before :meth:`release`."""
        with self._lock:
            self._tell(f"+ {session}\n")

    def release(self, session: int) -> None:
        """Unregister a process session after its first process has exited."""
        with self._lock:
            if self._owner == os.getpid():
                self._tell(f"- {session}\n")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # another process killed the shell
            os.write(self._pipe, line.encode())


def _start_guard() -> int:
    """Start the shell, and return the write end of its pipe."""
    reading, writing = os.pipe()
    try:
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        os.posix_spawn(
            "/bin/sh",
            ("sh", "-c", _SCRIPT),
            {"PATH": _PATH},
            file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0), *null],
            setsid=True,  # Ctrl-C in the terminal must not reach the shell
        )
    finally:
        os.close(reading)
    return writing


GUARD = Guard()
