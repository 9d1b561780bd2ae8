"""Messages compared with a frozen dataclass: equality, hash, repr, and the tools of `dataclasses`."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, fields, replace
from typing import Any

import pytest

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two fields."""

    name: str
    offset: int = 7


@message(frozen=True, slots=True, kw_only=True)
class Other:
    name: str
    offset: int = 7


@message(frozen=True, slots=True, kw_only=True)
class Single:
    parts: tuple[int, ...]


@message(frozen=True, slots=True, kw_only=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    name: str
    offset: int = 7


def test_value() -> None:
    assert Pair(name="a") == Pair(name="a", offset=7) != Pair(name="a", offset=8)
    assert Single(parts=(1, 2)) == Single(parts=(1, 2)) != Single(parts=(1,))
    assert Nothing() == Nothing()
    different: list[tuple[Any, Any]] = [(Pair(name="a"), Other(name="a")), (Pair(name="a"), ("a", 7)), (Nothing(), ())]
    assert not any(one == other for one, other in different)


@pytest.mark.parametrize("make", [lambda: Pair(name="a"), lambda: Single(parts=(1,)), Nothing])
def test_hash_goes_by_value(make: Any) -> None:
    assert len({make(), make()}) == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(Single(parts=[1]))  # type: ignore[arg-type]


def test_text_and_tools_are_those_of_a_dataclass() -> None:
    ours, model = Pair(name="a"), Frozen(name="a")
    assert repr(ours) == repr(model).replace("Frozen", "Pair")
    assert repr(Nothing()) == "Nothing()"
    assert replace(ours, offset=9) == Pair(name="a", offset=9)
    assert (asdict(ours), astuple(ours)) == (asdict(model), astuple(model))
    assert [field.name for field in fields(ours)] == [field.name for field in fields(model)]
    match ours:
        case Pair(name=name, offset=7):
            assert name == "a"
        case _:
            raise AssertionError("no match")


def test_fields_are_named_and_no_others_exist() -> None:
    with pytest.raises(TypeError):
        Pair("a")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Pair(name="a").more = 1  # type: ignore[attr-defined]
