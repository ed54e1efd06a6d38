"""Read the matrix's trainings from ``trainings.toml``, and read and write the record of their outcomes."""

import json
from pathlib import Path
from typing import Literal

import msgspec

from tests.matrix.launches import shape
from tests.matrix.record import place_name, without_address
from toolkit.model.facts import HostFacts, ImageFacts
from toolkit.model.prediction import Mode, Request

_HERE = Path(__file__).parent
SPECS = _HERE / "trainings.toml"
RECORD = _HERE / "trainings.json"
SCHEMA = "toolkit.trainings/1"


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One training, a row of ``trainings.toml``; comments in that file explain the keys."""

    image: str
    flavour: Literal["pmix", "hydra", "bare", "older"]
    mode: Mode
    central: str = ""
    nodes: int = 2
    ranks_per_node: int = 1

    @property
    def place(self) -> str:
        return place_name(self.flavour, self.central)

    @property
    def request(self) -> Request:
        return Request(nodes=self.nodes, ranks_per_node=self.ranks_per_node)

    @property
    def name(self) -> str:
        return f"{self.place}: {self.image} {self.mode} {shape(self.request)}"


class Trained(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded training, with the engine's prediction and the outcome.

    ``chosen`` is the launch mode that the engine chooses. ``by_itself`` is true if the command named no
    launch mode, so that the engine chose the mode. ``world_size`` and ``accuracy`` come from the training's
    result. ``line`` is the line with the cause of a failure.
    """

    wanted: Wanted
    predicted: str
    chosen: Mode | None
    by_itself: bool
    outcome: str
    exit: int | None
    world_size: int | None = None
    nodes: int | None = None
    accuracy: float | None = None
    images_per_second: float | None = None
    line: str = ""


class Trainings(msgspec.Struct, kw_only=True):
    schema: str = SCHEMA
    hosts: dict[str, HostFacts] = {}
    images: dict[str, ImageFacts] = {}
    trainings: list[Trained] = []

    def put(self, host: HostFacts, image: ImageFacts, trained: Trained) -> None:
        """Add or replace a training, and remove the trainings of older builds of the same image."""
        wanted = trained.wanted
        known = self.images.get(wanted.image)
        if known is not None and known.digest != image.digest:
            self.trainings = [t for t in self.trainings if t.wanted.image != wanted.image]
        self.hosts[wanted.place] = host
        self.images[wanted.image] = without_address(image)
        self.trainings = [t for t in self.trainings if t.wanted != wanted] + [trained]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    training: tuple[Wanted, ...]


def wanted() -> tuple[Wanted, ...]:
    return msgspec.toml.decode(SPECS.read_bytes(), type=_File).training


def load(path: Path = RECORD) -> Trainings:
    return msgspec.json.decode(path.read_bytes(), type=Trainings) if path.exists() else Trainings()


def save(record: Trainings, path: Path = RECORD) -> None:
    order = {one.name: place for place, one in enumerate(wanted())}
    plain = msgspec.to_builtins(record)
    rows = sorted(record.trainings, key=lambda t: order.get(t.wanted.name, len(order)))
    lines = ",\n".join(json.dumps(msgspec.to_builtins(row), ensure_ascii=False) for row in rows)
    hosts = json.dumps(plain["hosts"], indent=1, sort_keys=True)
    images = json.dumps(plain["images"], indent=1, sort_keys=True)
    text = f'{{"schema": "{SCHEMA}",\n"hosts": {hosts},\n"images": {images},\n"trainings": [\n{lines}\n]}}\n'
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    part.replace(path)
