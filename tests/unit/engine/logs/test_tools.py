"""Test lines of container runtimes, launchers, shells and build tools in the output of a job."""

from tests.unit.engine.logs.test_root import TRACEBACK, told
from tests.unit.tables import every_row
from toolkit.engine.logs.explanation import explain_output
from toolkit.engine.logs.joblines import Output


@every_row(
    ("line", "class_"),
    [
        ("FATA[0001] reading manifest v3 in registry.example/net: access is denied", "container-runtime"),
        (
            "FATA[0003] copying blob: dial tcp: lookup registry.example: server misbehaving",
            "network-or-dns",
        ),
        ("ERRO[0012] User-selected graph driver vfs overwritten", "container-runtime"),
        (
            'time="2026-01-02T03:04:05Z" level=fatal msg="writing layer: no space left on device"',
            "file-system-or-quota",
        ),
        ("time=2026-01-02T03:04:05Z level=error msg=unmounting", "container-runtime"),
        ('ERRO[0000] exec: "train": executable file not found in $PATH', "program-start"),
        ("[conmon:e]: no pipe to the parent", "container-runtime"),
    ],
)
def test_an_error_of_a_go_program_is_the_root_line(line, class_):
    assert told(f"INFO[0000] pulling\nDEBU[0000] no such file\n{line}\n")[:2] == (line, class_)


@every_row(
    "level", ["WARN[0000] ", "INFO[0000] ", "DEBU[0002] ", 'time="2026-01-02T03:04:05Z" level=warn msg=']
)
def test_a_go_program_that_only_warns_has_no_root_line(level):
    assert told(f"{level}cannot reach the daemon: permission denied\n")[0] == ""


def test_a_go_program_may_continue_after_an_error():
    text = "ERRO[0000] cannot set the cgroup manager\n" + TRACEBACK.format("it", "ValueError: batch of 7")
    assert told(text)[0] == "ValueError: batch of 7"
