"""A setting that can be changed while nodes run: what its text may be, and how it is read.

Values are sent and stored as text, as in Kafka.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from quorumlog.errors import ApiError, ErrorCode

MAX_LONG = 2**63 - 1
MAX_VALUE_CHARACTERS = 4_000  # per value; below the longest number that Python parses


class Kind(Enum):
    """How a value's text is parsed. The member's value is its name in error messages."""

    WHOLE = "a whole number"
    FRACTION = "a decimal number"
    BOOLEAN = "true or false"
    CHOICE = "one of the listed words"
    CHOICES = "a comma-separated list of the listed words"
    LIST = "a comma-separated list"


# int() and float() alone would accept underscores, digits of other scripts, inf and nan
_NUMBER = {
    Kind.WHOLE: re.compile(r"[+-]?[0-9]+"),
    Kind.FRACTION: re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One setting. `minimum` and `maximum` are inclusive and apply to numbers only; `choices` to words and booleans.

    may_be_empty: of a list of choices, none of which need to be chosen. alone: of a list: a word that stands for all
    others, and beside none.
    """

    name: str
    kind: Kind
    default: str
    minimum: float = 0
    maximum: float = MAX_LONG
    choices: tuple[str, ...] = ()
    may_be_empty: bool = False
    alone: str = ""
    pattern: str = ""  # of a list: that each of its words must match whole
    hint: str = ""  # the end of the error for a value that is not allowed
    doc: str


def parse_text(key: ConfigKey, text: str) -> int | float:
    """A number as itself, a boolean as 0 or 1, words as 0. Raises ApiError(INVALID_CONFIG)."""
    if len(text) > MAX_VALUE_CHARACTERS:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{key.name}: {len(text)} characters, limit {MAX_VALUE_CHARACTERS}")
    match key.kind:
        case Kind.WHOLE | Kind.FRACTION:
            return _number(key, text)
        case Kind.BOOLEAN:
            if text.strip().lower() not in (key.choices or ("true", "false")):
                raise _bad(key, text)
            return text.strip().lower() == "true"
        case Kind.CHOICE:
            if text not in key.choices:
                raise _bad(key, text)
        case Kind.CHOICES:
            found = words(text)
            is_empty = not found and not (key.may_be_empty and not text.strip())
            if is_empty or any(word not in key.choices for word in found):
                raise _bad(key, text)
        case Kind.LIST:
            if key.pattern and not all(re.fullmatch(key.pattern, word) for word in words(text)):
                raise _bad(key, text)
    return 0


def _number(key: ConfigKey, text: str) -> int | float:
    if not _NUMBER[key.kind].fullmatch(text.strip()):
        raise _bad(key, text)
    number = int(text) if key.kind is Kind.WHOLE else float(text)
    if not key.minimum <= number <= key.maximum:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"{key.name}={text}: must be between {key.minimum} and {key.maximum}, inclusive"
        )
    return number


def words(text: str) -> list[str]:
    """Of a list: without the empty ones."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _bad(key: ConfigKey, text: str) -> ApiError:
    choices = f" ({', '.join(key.choices)})" if key.choices else ""
    return ApiError(ErrorCode.INVALID_CONFIG, f"{key.name}={text!r}: must be {key.kind.value}{choices}{key.hint}")
