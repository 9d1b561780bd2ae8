"""`ssl.principal.mapping.rules`: from the distinguished name in a certificate to a principal's name.

Rules are Kafka's (KIP-371, `SslPrincipalMapper`): `DEFAULT`, or `RULE:PATTERN/REPLACEMENT/` with L or U behind it,
divided by commas. The first rule that fits decides: its pattern has to match the whole name. Then, as there, each match
of the pattern is replaced, which may be more than one (`.*` also matches the end). Patterns are RE2's: a name, which
comes from a client, cannot make it search without end; what RE2 lacks (lookaround, backreferences) is an error before
the start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

KEY = "ssl.principal.mapping.rules"
DEFAULT = "DEFAULT"
MAX_CHARACTERS = 16_384  # of all rules of a listener
MAX_MEMORY_BYTES = 8 << 20  # that RE2 may take for one pattern
MAX_NAME_CHARACTERS = 4_096  # of a distinguished name; a longer one fits no pattern
LINE_ENDS = "\n\r\x85\u2028\u2029"  # Java's `.` and `$` treat them in its own way: a name with one fits no pattern
_RULE = re.compile(r"DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_END = re.compile(r"\s*(?:,\s*|\Z)", re.ASCII)
_PIECE = re.compile(r"\\(.)|\$(\d+)|(\\|\$)|([^\\$]+)", re.DOTALL | re.ASCII)


class BadRules(ValueError):
    """Rules with which no listener may start. The message is a sentence about their text."""


@dataclass(frozen=True)
class Rule:
    """pattern: empty for DEFAULT. pieces: of the replacement: text, or the number of a group. case: L, U or nothing."""

    pattern: str
    pieces: tuple[str | int, ...]
    case: str

    def apply(self, name: str) -> str | None:
        """None: it does not fit."""
        if self.pattern == "":
            return name
        if len(name) > MAX_NAME_CHARACTERS or any(sign in name for sign in LINE_ENDS):
            return None
        if self._compiled.fullmatch(name) is None:
            return None
        parts, end = [], 0
        for match in self._compiled.finditer(name):
            parts.append(name[end : match.start()])
            parts += [piece if isinstance(piece, str) else match[piece] or "" for piece in self.pieces]
            end = match.end()
        mapped = "".join([*parts, name[end:]])
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    @cached_property
    def _compiled(self) -> Any:
        return _compile(self.pattern)


@dataclass(frozen=True)
class Mapping:
    """The rules of a listener."""

    rules: tuple[Rule, ...]

    def name_of(self, distinguished_name: str) -> str | None:
        """None: no rule fits, or the first that fits makes an empty name. Such a peer gets no principal at all."""
        for rule in self.rules:
            mapped = rule.apply(distinguished_name)
            if mapped is not None:
                return mapped or None
        return None


def parse_rules(text: str) -> Mapping:
    """Raises BadRules. Empty rules between commas are passed over; no rule at all maps nothing."""
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        raise BadRules(f"{len(text)} characters of rules, more than {MAX_CHARACTERS}")
    rules, position = [], 0
    while position < len(text):
        found = _RULE.match(text, position)
        end = _END.match(text, found.end() if found else position)
        if end is None:
            raise BadRules(
                f"{_shown(text[position:])} is no rule: write DEFAULT or RULE:PATTERN/REPLACEMENT/, L or U behind it"
            )
        if found is not None:
            rules.append(_rule(found))
        position = end.end()
    return Mapping(tuple(rules))


def _rule(found: re.Match[str]) -> Rule:
    if found[0] == DEFAULT:
        return Rule("", (), "")
    pattern, replacement, case = found[1], found[2], found[3]
    if not pattern:
        raise BadRules(f"{_shown(found[0])} has no pattern, and an empty one fits no name")
    groups = _compile(pattern).groups
    return Rule(pattern, _pieces(replacement, groups, found[0]), case)


def _pieces(replacement: str, groups: int, rule: str) -> tuple[str | int, ...]:
    """A number that no group has stays as text where there are groups (Kafka), and is an error where there are none."""
    pieces: list[str | int] = []
    for match in _PIECE.finditer(replacement):
        escaped, number, lonely, text = match.groups()
        if lonely is not None:
            raise BadRules(f"{_shown(rule)}: a `{lonely}` stands for itself only behind a `\\`")
        if number is None:
            pieces.append(escaped or text)
            continue
        group, rest = _reference(number, groups)
        if group is None and groups == 0:
            raise BadRules(f"{_shown(rule)}: ${number} names a group, and the pattern has none")
        pieces += [f"${number}"] if group is None else [group, rest]
    return tuple(pieces)


def _reference(number: str, groups: int) -> tuple[int | None, str]:
    """The group that a `$` with figures behind it means, and the figures that are text: as many as make a group."""
    size = next((size for size in range(len(number), 0, -1) if int(number[:size]) <= groups), 0)
    return (int(number[:size]), number[size:]) if size else (None, "")


def _compile(pattern: str) -> Any:
    import re2  # where there is TLS with certificates of clients only

    options = re2.Options()
    options.log_errors, options.max_mem = False, MAX_MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not valid"
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise BadRules(f"the pattern {_shown(pattern)} is not one of RE2: {said}") from error


def _shown(text: str) -> str:
    return f"`{text if len(text) <= 80 else text[:77] + '...'}`"
