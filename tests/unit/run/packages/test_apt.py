"""Test how toolkit reads the output of apt."""

import pytest

from tests.unit.heard import Heard
from tests.unit.tables import every_row
from toolkit.errors import CheckFailed, Missing
from toolkit.run.docker.containers import RunResult
from toolkit.run.packages import apt
from toolkit.run.packages.apt import files_of, read, sources_list

SAID = """
Get:1 http://mirror.example/debian bookworm InRelease [151 kB]
@set base
'http://mirror.example/x/debian/pool/main/d/dash/dash_0.5.12-2_amd64.deb' dash_0.5.12-2_amd64.deb 98 SHA256:{hash}
@set run
'http://mirror.example/debian-security/pool/updates/main/x/x/libx_2%3a1.8-1_amd64.deb' libx_2%3a1.8-1_amd64.deb 7 SHA256:{hash}
'http://other.example/ubuntu/pool/main/h/hello/hello_1_amd64.deb' hello_1_amd64.deb 5 SHA256:{hash}
@date Fri, 20 Nov 2026 00:12:41 UTC
@date Fri, 20 Nov 2026 02:11:10 UTC
""".format(hash="0a" * 32).splitlines()  # fmt: skip  # noqa: E501


def test_the_files_of_each_set_are_read():
    answer = read(SAID, {})
    (dash,), (hello, libx) = answer.sets["base"], answer.sets["run"]
    assert (dash.name, dash.version, dash.size, dash.sha256) == ("dash", "0.5.12-2", 98, "0a" * 32)
    assert (libx.name, libx.version, libx.file) == ("libx", "2:1.8-1", "libx_2%3a1.8-1_amd64.deb")
    assert dash.origin == "debian:pool/main/d/dash/dash_0.5.12-2_amd64.deb"
    assert libx.origin == "debian-security:pool/updates/main/x/x/libx_2%3a1.8-1_amd64.deb"
    assert hello.origin == "http://other.example/ubuntu/pool/main/h/hello/hello_1_amd64.deb"


def test_the_date_is_that_of_the_newest_list():
    assert read(SAID, {}).date == 1795140670


def test_security_fixes_are_among_the_sources_where_a_mirror_has_them():
    debian = {"debian": ("http://mirror.example/debian",)}
    assert "security" not in sources_list("bookworm", debian)
    both = {**debian, "debian-security": ("http://mirror.example/debian-security",)}
    assert "deb http://mirror.example/debian-security bookworm-security main" in sources_list(
        "bookworm", both
    )


def test_without_a_mirror_the_variable_that_names_one_is_told():
    with pytest.raises(Missing, match="no Debian mirror") as caught:
        sources_list("bookworm", {})
    assert "TOOLKIT_DEBIAN_MIRROR=URL" in caught.value.fix


def test_the_password_of_a_mirror_is_not_told_when_it_fails(monkeypatch):
    heard = Heard()

    def failing(_client, _box, _words, on_line):
        on_line("E: Failed to fetch https://ada:s3cret@mirror.example/debian/x")
        return RunResult(
            100, ("E: Failed to fetch https://ada:s3cret@mirror.example/debian/x",), timed_out=False
        )

    monkeypatch.setattr(apt, "run_once", failing)
    with pytest.raises(CheckFailed) as caught:
        files_of(None, "image", "bookworm", {"run": ("hello",)}, heard, from_nothing=False)
    assert (
        heard.details == list(caught.value.detail) == ["E: Failed to fetch https://mirror.example/debian/x"]
    )


@every_row(
    ("architecture", "asked"), [("aarch64", "arm64"), ("ppc64le", "ppc64el"), ("x86_64", "amd64"), ("", "")]
)
def test_packages_of_another_processor_are_asked_for_by_debians_name(monkeypatch, architecture, asked):
    seen = []

    def answering(_client, box, _words, _on_line):
        seen.append(box.env["ARCHITECTURE"])
        return RunResult(0, ("@set run",))

    monkeypatch.setattr(apt, "run_once", answering)
    monkeypatch.setattr(apt, "of_machine", lambda: {"debian": ("http://mirror.example/debian",)})
    sets = {"run": ("hello",)}
    files_of(None, "i", "bookworm", sets, Heard(), from_nothing=True, architecture=architecture)
    assert seen == [asked]
