"""Test the fault classes that follow from the innermost frame of a traceback."""

from tests.unit.engine.logs.test_root import told
from tests.unit.tables import every_row

USER = "/home/bo/timer.py"
LIBRARY = "/venv/lib/python3.11/site-packages/redis/connection.py"


@every_row(
    ("file", "code", "error", "class_"),
    [
        (USER, "raise TimeoutError(", "TimeoutError: shard 3 took longer than 600 s", "python-exception"),
        (USER, "raise ConnectionError(text)", "ConnectionError: the server left", "python-exception"),
        (LIBRARY, "raise TimeoutError(text)", "TimeoutError: no answer", "network-or-dns"),
        (USER, "sock.connect(address)", "TimeoutError: [Errno 110] Connection timed out", "network-or-dns"),
        (USER, "os.setpriority(0, 0, -5)", "PermissionError: [Errno 13] Permission denied", "system-limit"),
        (
            USER,
            "resource.setrlimit(n, x)",
            "PermissionError: [Errno 1] Operation not permitted",
            "system-limit",
        ),
        (
            USER,
            "s.setsockopt(a, b, 50)",
            "PermissionError: [Errno 1] Operation not permitted",
            "python-exception",
        ),
        (USER, "os.sched_setscheduler(0, 1, p)", "OSError: [Errno 22] Invalid argument", "python-exception"),
        (USER, "f.seek(-4)", "OSError: [Errno 22] Invalid argument", "file-system-or-quota"),
    ],
)
def test_the_innermost_frame_shows_the_class(file, code, error, class_):
    log = f'Traceback (most recent call last):\n  File "{file}", line 9, in run\n    {code}\n{error}\n'
    assert told(log)[:2] == (error, class_)
