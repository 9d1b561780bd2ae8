"""The names in an expression of PromQL: enough of its grammar to see which series and labels are meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from quorumlog_server.metrics.series import Kind, Series

FUNCTIONS = {
    "absent", "changes", "count", "group", "histogram_quantile", "increase", "last_over_time", "max", "max_over_time",
    "min", "min_over_time", "rate", "sum", "timestamp", "topk",
}  # fmt: skip
WORDS = {"and", "or", "unless", "bool", "offset"}
GROUPERS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
OF_A_SCRAPE = {"job", "instance"}  # of every series
TOKEN = re.compile(
    r'\s*(?:(?P<text>"[^"]*")|(?P<range>\[[^\]]*\])|(?P<number>\d+(?:\.\d+)?[smhd]?)|(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)'
    r"|(?P<sign>[!=]~|[!=<>]=|[-+*/<>={}(),]))"
)
SUFFIXES = {"_bucket": "le", "_sum": "", "_count": ""}


class Names(NamedTuple):
    """series: each with the labels in its braces. labels: of groupings. unknown: what is neither series nor word."""

    series: tuple[tuple[str, tuple[str, ...]], ...]
    labels: tuple[str, ...]
    unknown: tuple[str, ...]


def tokens(expression: str) -> list[tuple[str, str]]:
    """Kinds and texts. Raises ValueError where it is none of PromQL's."""
    found, place = [], 0
    while place < len(expression.rstrip()):
        match = TOKEN.match(expression, place)
        if match is None:
            raise ValueError(f"not PromQL from {expression[place:]!r} on")
        found.append((match.lastgroup or "", match[match.lastgroup or 0]))
        place = match.end()
    return found


def names_in(expression: str) -> Names:
    series: list[tuple[str, tuple[str, ...]]] = []
    labels: list[str] = []
    unknown: list[str] = []
    all_of = [*tokens(expression), ("", ""), ("", "")]
    index = 0
    while index < len(all_of) - 2:
        kind, text = all_of[index]
        following = all_of[index + 1][1]
        index += 1
        if kind != "name" or text in WORDS:
            continue
        if text in GROUPERS and following == "(":
            index += 1
            while all_of[index][1] != ")":
                labels += [all_of[index][1]] if all_of[index][0] == "name" else []
                index += 1
        elif text in GROUPERS or (text in FUNCTIONS and (following == "(" or following in GROUPERS)):
            continue
        elif following == "(":
            unknown.append(text)
        else:
            inside: list[str] = []
            while following == "{" and all_of[index][1] != "}":
                inside += [all_of[index][1]] if all_of[index][0] == "name" else []
                index += 1
            series.append((text, tuple(inside)))
    return Names(tuple(series), tuple(dict.fromkeys(labels)), tuple(unknown))


def mistakes(expression: str, catalogue: Iterable[Series]) -> list[str]:
    """A text for each name that a node's page has not. A label of a grouping must be on some series of it."""
    names, known = names_in(expression), by_shown_name(catalogue)
    found = [f"{one} is no function" for one in names.unknown]
    all_labels = set(OF_A_SCRAPE)
    for name, inside in names.series:
        if name not in known:
            found.append(f"{name} is in no catalogue")
            continue
        own = OF_A_SCRAPE | set(known[name])
        all_labels |= own
        found += [f"{name} has no label {label}" for label in inside if label not in own]
    found += [f"no series has the label {label}" for label in names.labels if label not in all_labels]
    return found if names.series else [*found, "it names no series"]


def by_shown_name(catalogue: Iterable[Series]) -> dict[str, tuple[str, ...]]:
    """The labels of each name that stands on the page."""
    known = {}
    for one in catalogue:
        if one.kind is Kind.HISTOGRAM:
            for suffix, label in SUFFIXES.items():
                known[one.full_name + suffix] = (*one.labels, label) if label else one.labels
        else:
            known[one.full_name] = one.labels
    return known
