"""JSON whose numbers stay as they were written: 64-bit integers, 1e400, NaN, and thirty digits after the point.

RFC 8259, and besides it `NaN`, `Infinity` and `-Infinity`, which many writers write and Python's `json` reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

MAX_NESTING = 200  # of arrays and objects; deeper text is shown as text
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_TEXT = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'  # to the end where nothing closes it, so that no sign is looked at twice
_TOKEN = re.compile(_TEXT + r'|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_BRACKET = re.compile(_TEXT + r"|[{}\[\]]", re.DOTALL)
_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?)0*(\d+))?")
_EXPONENT_DIGITS = 18  # of an exponent that is calculated with; a number with more of them equals its own text only


class NotJson(ValueError):
    """Not UTF-8, not JSON, or nested too deeply."""


class Number:
    """A number of a JSON text, by its digits. 1.0, 1 and 10e-1 are equal, as numbers are; NaN equals NaN here.

    Compared without arithmetic on the digits, so that 1e999999999 takes no more time than 1.
    """

    __slots__ = ("_known", "text")

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._known: tuple[Any, ...] | None = None  # a record may have hundreds of thousands, of which one is compared

    @property
    def _order(self) -> tuple[Any, ...]:
        if self._known is None:
            self._known = _order(self.text)
        return self._known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self._order == other._order

    def is_less(self, other: Number) -> bool:
        """NaN is neither smaller nor larger than anything."""
        return "NaN" not in (self.text, other.text) and self._order < other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def __repr__(self) -> str:
        return f"Number({self.text})"


def _order(text: str) -> tuple[Any, ...]:
    """What compares like the number: sign, magnitude, digits; of a negative one, the larger magnitude comes first."""
    if text in NOT_FINITE:
        return {"NaN": (3,), "Infinity": (2,), "-Infinity": (-2,)}[text]
    found = _NUMBER.fullmatch(text)
    assert found is not None, f"not a number of JSON: {text!r}"
    sign, whole, part, exponent_sign, exponent = found.groups()
    all_digits = whole + (part or "")
    digits = all_digits.lstrip("0")
    if not digits:
        return (0,)
    if exponent and len(exponent) > _EXPONENT_DIGITS:
        power = (10**_EXPONENT_DIGITS) * (-1 if exponent_sign == "-" else 1)
        digits = f"{digits.rstrip('0')} {text}"  # two such numbers are told apart by their texts
    else:
        power = int(exponent or "0") * (-1 if exponent_sign == "-" else 1)
        digits = digits.rstrip("0")
    magnitude = power + len(whole) - (len(all_digits) - len(all_digits.lstrip("0")))
    if sign:
        return (-1, -magnitude, (*(-ord(digit) for digit in digits), 1))
    return (1, magnitude, tuple(ord(digit) for digit in digits))


class Members(list[tuple[str, Any]]):
    """The members of an object, in their order; a name may come twice."""


def read_json(data: bytes | str) -> Any:
    """None, bool, str, Number, list or Members. Raises NotJson."""
    if isinstance(data, bytes):
        try:
            data = data.decode()
        except UnicodeDecodeError as error:
            raise NotJson(f"not UTF-8: {error}") from error
    if deepest(data) > MAX_NESTING:
        raise NotJson(f"nested more than {MAX_NESTING} deep")
    try:
        return json.loads(data, parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=Members)
    except ValueError as error:
        raise NotJson(str(error)) from error


def check_json(text: str) -> None:
    """As `read_json`, without the value. Raises NotJson."""
    if deepest(text) > MAX_NESTING:
        raise NotJson(f"nested more than {MAX_NESTING} deep")
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except ValueError as error:
        raise NotJson(str(error)) from error


def deepest(text: str) -> int:
    """An upper limit of how deeply arrays and objects are nested, by signs alone; brackets in texts do not count.

    Nothing is looked at behind the first place that is too deep.
    """
    depth = most = 0
    for found in _BRACKET.finditer(text):
        sign = found[0]
        if sign in "{[":
            depth += 1
            most = max(most, depth)
            if most > MAX_NESTING:
                break
        elif sign in "}]":
            depth -= 1
    return most


def tokens(text: str) -> Iterator[str]:
    """Of a text that `read_json` takes: texts, numbers and names with all their signs, and the punctuation."""
    return (found[0] for found in _TOKEN.finditer(text))


def pretty(text: str, indent: str = "  ", most: int | None = None) -> str:
    """The same tokens, one member or item a line. Nothing but white space differs. text: one that `read_json` takes.

    most: signs, of which the beginning is wanted: it ends soon behind them. All of it may take 200 times the room.
    """
    lines: list[str] = []
    line, depth, size = "", 0, 0
    previous = ""

    def end_line() -> None:
        nonlocal line, size
        lines.append(line)
        size += len(line) + 1
        line = indent * depth

    for token in tokens(text):
        if most is not None and size + len(line) > most:
            break
        if token in ("}", "]"):
            depth -= 1
            if previous not in ("{", "["):
                end_line()
            line += token
        else:
            if previous in ("{", "["):
                end_line()
            line += token
            if token in ("{", "["):
                depth += 1
            elif token == ",":
                end_line()
            elif token == ":":
                line += " "
        previous = token
    return "\n".join([*lines, line])
