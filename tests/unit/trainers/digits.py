"""Write small files in MNIST's format."""

from pathlib import Path


def idx(sizes: tuple[int, ...], content: bytes) -> bytes:
    return bytes((0, 0, 8, len(sizes))) + b"".join(size.to_bytes(4, "big") for size in sizes) + content


def write_digits(folder: Path, train: int = 6, test: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        images = bytes(i % 251 for i in range(count * 28 * 28))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx((count, 28, 28), images))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx((count,), bytes(i % 10 for i in range(count))))
    return folder
