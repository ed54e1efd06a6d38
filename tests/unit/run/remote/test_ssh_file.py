import pytest

from tests.unit.tables import every_row
from toolkit.errors import BadInput
from toolkit.run.remote.ssh_file import check_ssh_config

GOOD = b"""\
# a centre
IgnoreUnknown UseKeychains,Apple*

Host login *.example.org
    HostName=login.example.org
    Port = 2222
    IdentityFile "~/.ssh/my key"
    GSSAPIKeyExchange yes
    UseKeychains yes
    AppleThing 1
Match host x exec "test -f /x"
    ProxyJump gate
"""


@every_row("content", [GOOD, b"", b"\xef\xbb\xbfHost x\n", GOOD.replace(b"\n", b"\r\n")])
def test_a_configuration_is_taken(tmp_path, content):
    (tmp_path / "config").write_bytes(content)
    check_ssh_config(tmp_path / "config")


@every_row(
    ("content", "said"),
    [
        (b"hello world\n", "config:1: 'hello' is not a keyword"),
        (b"Host x\n  Prot 22\n", "config:2: 'prot' is not a keyword of ssh_config(5) (did you mean port?)"),
        (b"Host x\n  Port\n", "config:2: port: the value is missing"),
        (b"Host x\n\xff\xfe\n", "config:2: the line is not UTF-8"),
        (bytes(4096), "config:1: "),
        (b"a" * 900_000, "config:1: 'aaaa"),
        (b"#" * (2 << 20), "longer than 1 MiB"),
    ],
)
def test_other_text_is_told_with_its_line(tmp_path, content, said):
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(BadInput) as caught:
        check_ssh_config(tmp_path / "config")
    assert said in caught.value.message
    assert len(caught.value.message) < 400
