"""A lock of somebody else: every field has a grammar, and nothing of it acts before that was checked."""

import json
from pathlib import Path

import pytest

from tests.fuzz import locks
from tests.unit.image.locks import file, lock
from toolkit.errors import BadInput
from toolkit.image.lock import decode_lock
from toolkit.image.origins import require_accepted
from toolkit.model.lock import encoded

PLACES = list(locks.fields(json.loads(encoded(lock()))))
FILE = ("base", "packages", 0)


def test_every_field_with_every_hostile_value_is_refused_or_harmless(tmp_path: Path) -> None:
    path, wrong = tmp_path / "x.lock.json", []
    for place in PLACES:
        for value in locks.HOSTILE:
            path.write_bytes(locks.with_value(place, value))
            try:
                locks.read(path, 0)
            except BadInput as error:
                if "\n" in error.message or not error.message.startswith("x.lock.json: "):
                    wrong.append((place, value, error.message))
            except Exception as error:  # noqa: BLE001 - all of them are listed
                wrong.append((place, value, repr(error)))
    assert not wrong


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ((*FILE, "sha256"), "../../../../tmp/x", "base.packages[0].sha256"),
        ((*FILE, "file"), "x\nRUN evil", "base.packages[0].file"),
        ((*FILE, "file"), "../../x", "base.packages[0].file"),
        ((*FILE, "name"), "a,b --x", "base.packages[0].name"),
        ((*FILE, "version"), "1 --x", "base.packages[0].version"),
        ((*FILE, "origin"), "http://127.0.0.1:5333/evil_1_all.deb", "base.packages[0].origin"),
        (("base", "release"), "--logfile=/path", "base.release"),
        (("base", "release"), "--setup-hook=evil", "base.release"),
        (("base", "published"), "x\nRUN evil", "base.published"),
        (("recipe",), "../x", "recipe"),
    ],
)
def test_the_field_that_is_wrong_is_named(place: tuple[str | int, ...], value: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        decode_lock(locks.with_value(place, value), "r.lock.json")
    assert caught.value.message.startswith(f"r.lock.json: {said}: ")


def test_files_of_a_foreign_host_need_a_word_of_the_user() -> None:
    foreign = file("dash", "1", ".deb")
    foreign = type(foreign)(
        **{
            **{n: getattr(foreign, n) for n in foreign.__struct_fields__},
            "origin": "https://evil.example/dash_1.deb",
        }
    )
    with pytest.raises(BadInput, match=r"takes files from evil\.example") as caught:
        require_accepted([foreign], "r.lock.json", ())
    assert "--accept-origin evil.example" in caught.value.fix
    require_accepted([foreign], "r.lock.json", ("evil.example",))
