import gzip
import io
import lzma
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tables import every_row
from toolkit.dataset.archives import ARCHIVE_ERRORS, deb, tar
from toolkit.errors import Missing

CONTENT = b"pixels" * 1000


def packed(*members, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, *what in members:
            info = tarfile.TarInfo(name)
            if isinstance(what[0], str):
                info.type, info.linkname = what[0].encode(), what[1]
                archive.addfile(info)
            else:
                info.size = len(what[0])
                archive.addfile(info, io.BytesIO(what[0]))
    return buffer.getvalue()


def package(data, name=b"data.tar.xz"):
    def member(name, content):
        head = name.ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"100644".ljust(8)
        return head + str(len(content)).encode().ljust(10) + b"`\n" + content + b"\n" * (len(content) % 2)

    return (
        b"!<arch>\n"
        + member(b"debian-binary", b"2.0\n")
        + member(b"control.tar.xz", b"xyz")
        + member(name, data)
    )


def read(content, name="images", opening=tar, folder="data/set"):
    with opening(io.BytesIO(content), folder, "here") as archive, archive.member(name) as stream:
        return stream.read()


@every_row("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_file_is_read_whatever_the_packing(mode):
    assert read(packed(("data/set/other", b"x"), ("data/set/images", CONTENT), mode=mode)) == CONTENT


def test_names_may_begin_with_the_folder_itself():
    assert read(packed(("./data/set/images", CONTENT))) == CONTENT


def test_what_is_packed_in_the_archive_is_unpacked():
    assert read(packed(("data/set/images.gz", gzip.compress(CONTENT)))) == CONTENT


def test_files_are_read_in_any_order():
    content = packed(("data/set/a", b"A"), ("data/set/b", b"B"))
    with tar(io.BytesIO(content), "data/set", "here") as archive:
        for name in ("b", "a", "b"):
            with archive.member(name) as stream:
                assert stream.read() == name.upper().encode()


@every_row(
    "member",
    [
        ("images", CONTENT),
        ("/data/set/images", CONTENT),
        ("../data/set/images", CONTENT),
        ("data/set/../set/images", CONTENT),
        ("data/set/images", "2", "/etc/passwd"),
        ("data/set/images", "1", "data/set/other"),
        ("data/set/images", "5", ""),
        ("data/set/images", "3", ""),
        ("data/set/images", "6", ""),
    ],
    ids=lambda member: "-".join(str(one)[:20] for one in member),
)
def test_only_a_file_of_exactly_that_name_counts(member):
    with pytest.raises(Missing, match="here: the archive has no file data/set/images"):
        read(packed(member, ("data/set/other", b"x")))


@every_row("content", [b"", b"<html>log in first</html>", b"\x1f\x8b\x08\x00" + b"\xff" * 40])
def test_what_is_no_archive_is_told(content):
    with pytest.raises(Missing, match="here: not a tar archive"):
        read(content)


def test_a_package_of_debian_is_read():
    assert read(package(packed(("./data/set/images", CONTENT), mode="w:xz")), opening=deb) == CONTENT


@every_row(
    ("content", "said"),
    [
        (b"", "not a Debian package"),
        (b"<html>", "not a Debian package"),
        (package(b"", b"other.tar.xz"), "the package has no data.tar"),
        (package(b"x")[:70], "the package has no data.tar|is damaged"),
        (package(b"x").replace(b"`\n", b"xx"), "is damaged"),
        (package(b"no tar"), "not a tar archive"),
        (package(lzma.compress(b"no tar")), "not a tar archive"),
    ],
)
def test_what_is_no_package_is_told(content, said):
    with pytest.raises(Missing, match=f"here: .*({said})"):
        read(content, opening=deb)


PACKAGE = package(packed(("./data/set/images", CONTENT), mode="w:xz"))


@settings(deadline=None)
@given(st.integers(0, len(PACKAGE) - 1), st.integers(1, 255))
def test_a_damaged_package_gives_an_error_of_ours_or_the_bytes(at, change):
    damaged = bytearray(PACKAGE)
    damaged[at] ^= change
    try:
        assert len(read(bytes(damaged), opening=deb)) <= len(CONTENT)
    except Missing:
        pass
    except ARCHIVE_ERRORS:  # reading the archive fails; ``fetch`` reports such errors
        pass


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_a_sentence(content):
    for opening in (tar, deb):
        with pytest.raises(Missing):
            read(content, opening=opening)
