"""Stop the children of this process if it is killed (SIGKILL) and cannot stop them itself.

A small shell reads a pipe whose other end this process holds. The kernel closes that end with the process,
and the shell then kills every session that was registered and not released. ``PR_SET_PDEATHSIG`` (prctl(2))
would not do: it does not reach grandchildren, and a child also gets it when the *thread* that started it
exits.
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
"""Field 6 of proc_pid_stat(5), the session, is the fourth after the name of the program."""

_PATH = "/usr/bin:/bin"


class Guard:
    """Watches sessions of processes by one shell, which is started once.

    If this process is killed between the start of a child and :meth:`watch`, the child stays. The window is
    one system call if :meth:`prepare` comes first, and longer on a busy machine.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._pipe = -1

    def prepare(self) -> None:
        """Start the shell, unless this process has started it. Call this function before starting a child."""
        with self._lock:
            if self._owner != os.getpid():  # after a fork the pipe belongs to the parent
                self._pipe, self._owner = _start_guard(), os.getpid()

    def watch(self, session: int) -> None:
        """Stop a session, by its number, if this process dies before :meth:`release` is called for it."""
        with self._lock:
            self._tell(f"+ {session}\n")

    def release(self, session: int) -> None:
        """Forget a session, because its first process has exited."""
        with self._lock:
            if self._owner == os.getpid():
                self._tell(f"- {session}\n")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # another process killed the shell
            os.write(self._pipe, line.encode())


def _start_guard() -> int:
    """Start the shell, and return the end of its pipe that keeps it waiting."""
    reading, writing = os.pipe()
    try:
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        os.posix_spawn(
            "/bin/sh",
            ("sh", "-c", _SCRIPT),
            {"PATH": _PATH},
            file_actions=[(os.POSIX_SPAWN_DUP2, reading, 0), *null],
            setsid=True,  # the shell must not get Ctrl-C from the terminal
        )
    finally:
        os.close(reading)
    return writing


GUARD = Guard()
