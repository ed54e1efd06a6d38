"""Make hostile images with paths that leave the image, endless links, or data that unpacks to a huge size."""

import gzip
import io
import random
import struct
import tarfile
from collections.abc import Callable

import zstandard

from tests.fuzz import seeds
from tests.fuzz.damage import bytewise
from tests.unit.image import bombs
from tests.unit.image.archives import tar
from tests.unit.image.sifs import elf, sif, squashfs

SECRET = "TOP-SECRET-OF-THE-HOST"  # noqa: S105 - a mark to look for
"""Content of a file outside the image; hostile paths and links of the image point to this file."""
_NAMES = (
    *(
        "etc/os-release",
        "etc/ld.so.conf",
        "etc/ld.so.conf.d/a.conf",
        "var/lib/dpkg/status",
        "usr/bin/python3",
    ),
    *("opt/toolkit/stack.json", ".singularity.d/labels.json", ".singularity.d/runscript", "usr/bin/mpirun"),
    *(".singularity.d/env/90-environment.sh", "usr/lib/libmpi.so.40", "usr/lib/x86_64-linux-gnu/libc.so.6"),
    *("usr/lib/libpmix.so.2", "opt/a/lib/libmpi.so.12", "opt", "usr", "usr/lib", "lib", "lib64", "a" * 200),
    *(
        "../secret",
        "../../secret",
        "/../secret",
        "x/../../../secret",
        "/etc/os-release",
        "\x1b[31m",
        "a\nb",
        "é/\udcff",
    ),
    *("opt/venv/lib/python3.11/site-packages/horovod/tensorflow/mpi_lib.so", "usr/.wh..wh..opq", ".wh.usr"),
    *("etc/.wh.os-release", "opt/venv/pyvenv.cfg", "opt/venv/bin/python3", "a/" * 900 + "b"),
)
_LINKS = (
    *(
        ".",
        "..",
        "/",
        "loop",
        "../secret",
        "../../secret",
        "../../../secret",
        "/proc/self/environ",
        "/etc/passwd",
    ),
    *("/opt", "/opt/a", "../" * 1300, "a/" * 2000, "/usr/lib", "", "x\0y", "/dev/zero", "/dev/stdin"),
)
_TEXTS = (
    *(
        "ID=debian\nVERSION_ID=12\n",
        "include /etc/ld.so.conf\n",
        "include /etc/ld.so.conf.d/*\n",
        "include */*/*/*\n",
    ),
    *(
        "Package: a\nStatus: install ok installed\nVersion: 1\n\n" * 50,
        "[" * 10_000,
        '{"mpi": 1}',
        '{"a": 1e999}',
    ),
    *(
        'export PATH="$PATH:$PATH:$PATH"\n' * 40,
        "export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-/x}\n",
        "\\1" * 999,
        "\0" * 999,
    ),
    *(
        "OCI_ENTRYPOINT='" + '"a" ' * 900 + "'\n",
        "version = 3.11.2\n",
        "9" * 6000,
        "/" * 9000,
        "\u202e\x1b[2J",
    ),
)


def files(chance: random.Random) -> dict[str, bytes | str]:
    """Return harmless and hostile files by their paths in a layer."""
    found = seeds.below(seeds.FILES) if chance.random() < 0.6 else {"usr/bin/env": elf()}
    for _ in range(chance.randint(1, 8)):
        name = chance.choice((*_NAMES, *found))
        found[name] = _content(chance)
    return found


def _content(chance: random.Random) -> bytes | str:
    way = chance.randrange(5)
    if way == 0:
        return chance.choice(("->", "->", "=>")) + chance.choice(_LINKS)
    if way == 1:
        return chance.choice(_TEXTS) + chance.choice(_TEXTS)
    return library(chance) if way < 4 else chance.randbytes(chance.choice((0, 1, 70, 5000)))


def library(chance: random.Random) -> bytes:
    """Return an ELF library with damaged tables, or with very long tables and names."""
    names = (
        "libmpi.so.40",
        "libpmix.so.2",
        "libx.so",
        "../../secret",
        "a" * 5000,
        "",
        "/etc/passwd",
        "x\x1by",
    )
    text = chance.choice(
        (b"ompi_mpi_comm_world\0", b"MPICH\0PMI_FD\0", b"Open MPI v9.9.9\0" * 500, b"\0" * 3000, b"")
    )
    made = bytearray(
        elf(
            soname=chance.choice(names),
            needed=tuple(chance.choice(names) for _ in range(chance.choice((0, 1, 5, 300)))),
            runpath=chance.choice(("", "$ORIGIN", "$ORIGIN/../..", ":" * 3000, "/opt/*")),
            rpath=chance.choice(("", "/", "$ORIGIN" * 200)),
            text=text,
        )
    )
    for at, form in (
        (56, "<H"),
        (54, "<H"),
        (32, "<Q"),
        (40, "<Q"),
        (64 + 56 + 32, "<Q"),
        (64 + 56 + 8, "<Q"),
        (64 + 32, "<Q"),
    ):
        if chance.random() < 0.15:
            largest = (1 << 8 * struct.calcsize(form)) - 1
            struct.pack_into(
                form, made, at, chance.choice((0, 1, largest, largest >> 1, len(made) & largest))
            )
    return bytewise(bytes(made), chance) if chance.random() < 0.5 else bytes(made)


def packed_files(chance: random.Random) -> bytes:
    found = files(chance)
    if chance.random() < 0.3:
        plain = {n: c.encode("utf-8", "replace") if isinstance(c, str) else c for n, c in found.items()}
        try:
            made = squashfs(plain)
        except (AttributeError, TypeError, UnicodeEncodeError, struct.error):
            return seeds.flat()[0]  # an invalid name, or a file and a folder with the same name
        return sif(made) if chance.random() < 0.5 else made
    half = dict(list(found.items())[: len(found) // 2])
    return seeds.archive_of([_tar(half), _tar(found)], chance)


def _tar(found: dict[str, bytes | str]) -> bytes:
    return tar(
        {
            n: c.replace("\0", "") if isinstance(c, str) and c[:2] in {"->", "=>"} else c
            for n, c in found.items()
        }
    )


def lying_block(chance: random.Random) -> bytes:
    """Return a squashfs, or a SIF with a squashfs, in which the stated size of a block is wrong."""
    codec, place = chance.choice(sorted(bombs.FRAMES)), chance.choice(("data", "metadata"))
    frames = dict(bombs.FRAMES)
    if codec == "zstd" and chance.random() < 0.5:
        frames[codec] = bombs.zstd_silent_frame
    frame = bytearray(frames[codec](chance.choice((1, 8, 24)) << 20))
    if codec == "zstd" and frame[4] == 0b11000000:
        named = chance.choice((0, 1, 8192, 8193, 1 << 17, 1 << 32, 1 << 39, (1 << 64) - 1))
        frame[6:14] = named.to_bytes(8, "little")
        if chance.random() < 0.3:  # a zstd frame of one segment, whose window is as large as its stated size
            frame[4:6] = bytes([0b11100000])
    made = bytes(frame) if chance.random() < 0.7 else bytewise(bytes(frame), chance)
    files = {"usr/bin/env": elf(), "usr/lib/libmpi.so.40": library(chance)}
    image = bombs.lying(files, codec, made[:0xFFFFFF], place)
    return sif(image) if chance.random() < 0.5 else image


def bomb(chance: random.Random) -> bytes:
    return chance.choice(_BOMBS)(chance)


def _zeros(chance: random.Random) -> bytes:
    """Return a small compressed archive with one file, which unpacks to 64 or 256 MiB of zeros."""
    size = chance.choice((64, 256)) << 20
    layer = tar({"a": b""})[:512]
    head = bytearray(layer)
    head[124:136] = f"{size:011o}\0".encode()
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    if chance.random() < 0.5:
        packer = zstandard.ZstdCompressor(level=1).compressobj()
        return b"".join(
            [
                packer.compress(bytes(head)),
                *(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)),
                packer.flush(),
            ]
        )
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as file:
        file.write(bytes(head))
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    return out.getvalue()


def _members(chance: random.Random) -> bytes:
    names = [f"{n % 977}/{n}" for n in range(chance.choice((2000, 20_000)))]
    head = b"".join(_header(name) for name in names)
    return gzip.compress(head * chance.choice((1, 20)), 1, mtime=0)


def _header(name: str) -> bytes:
    entry = tarfile.TarInfo(name)
    return entry.tobuf(tarfile.USTAR_FORMAT)


def _deep(chance: random.Random) -> bytes:
    names = ["/".join(chance.choice("abc") for _ in range(chance.randint(1, 1500))) for _ in range(300)]
    return seeds.archive_of([tar(dict.fromkeys(names, ""))], chance)


def _loops(chance: random.Random) -> bytes:
    links = {f"l{n}": f"->l{(n + 1) % 60}/{'./' * 500}" for n in range(60)}
    more = {f"l{n % 60}/{n}": "" for n in range(500)} if chance.random() < 0.5 else {}
    folders = {f"opt/l{n}": "->." for n in range(400)}
    return seeds.archive_of([tar({"usr/bin/env": elf(), **links, **folders, **more})], chance)


def _hidden(chance: random.Random) -> bytes:
    """Return an image with many layers that add and delete the same files."""
    many = tar({f"d/{n}": "" for n in range(1500)})
    hide = tar({"d/.wh..wh..opq": "", "d/x": ""})
    return seeds.archive_of([many, hide] * 20, chance)


def _squash(chance: random.Random) -> bytes:
    """Return a squashfs with up to six wrong numbers in its tables, such as the huge size of a file."""
    made = bytearray(squashfs({"usr/lib/libmpi.so.40": elf(), "etc/os-release": b"ID=x\n", "opt/a": b""}))
    inodes = struct.unpack_from("<Q", made, 64)[0] + 2
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(inodes, len(made) - 8)
        struct.pack_into("<I", made, at, chance.choice((0, 3, 32, 0xFFFF, 0xFFFFFFFF, 1 << 30)))
    return bytes(made)


def _pax(chance: random.Random) -> bytes:
    entry = tarfile.TarInfo("x")
    key = chance.choice(("path", "linkpath", "size", "GNU.sparse.name", "GNU.sparse.size", "x" * 300))
    entry.pax_headers = {key: chance.choice(("9" * 30, "-1", "../" * 900, "a" * 900_000, "é" * 2000, "1"))}
    return seeds.archive_of([tar({"x": entry, "usr/bin/env": elf()})], chance)


_BOMBS: tuple[Callable[[random.Random], bytes], ...] = (
    _members,
    _deep,
    _loops,
    _hidden,
    _squash,
    _squash,
    _pax,
    _zeros,
)
