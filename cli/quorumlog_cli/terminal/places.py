"""Parses where reading starts and stops, in the syntax of kcat and rpk.

    beginning, earliest   end, latest   47 (an offset)   -3 (the last three)   @TIME   s@TIME (start)   e@TIME (stop)

TIME is as everywhere (`quorumlog.client.looking.times`); a time ago may have a minus, as rpk's. --since TIME is s@TIME,
and --until TIME is e@TIME.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quorumlog_cli.terminal.errors import CliError, Exit

_NUMBER = re.compile(r"-?\d+", re.ASCII)
_NAMES = {"beginning": "earliest", "earliest": "earliest", "start": "earliest", "end": "latest", "latest": "latest"}


@dataclass(frozen=True, slots=True)
class Range:
    """start: "earliest", "latest", an offset, or "@<ms>". last: this many records before the end, in place of start.

    stop: "@<ms>" or "latest"; None: never.
    """

    start: int | str = "earliest"
    last: int | None = None
    stop: str | None = None


def time_ms(text: str, now_ms: int, option: str = "") -> int:
    """A TIME in ms since 1970. option: that it was given to, for the message. Raises CliError."""
    from quorumlog.client.looking.times import read_time

    try:
        return read_time(text, now_ms)
    except ValueError as error:
        raise CliError(Exit.USAGE, f"{option}: {error}" if option else str(error)) from None


def parse_places(texts: list[str], *, to_end: bool, now_ms: int) -> Range:
    """texts: the values of all -O; a later one wins. to_end: stop at the current end. Raises CliError."""
    start: int | str = "earliest"
    last: int | None = None
    stop: str | None = "latest" if to_end else None
    for text in texts:
        if text.startswith("e@"):
            stop = f"@{time_ms(text[2:], now_ms)}"
            continue
        start, last = _start(text, now_ms)
    return Range(start, last, stop)


def _start(text: str, now_ms: int) -> tuple[int | str, int | None]:
    if text in _NAMES:
        return _NAMES[text], None
    if _NUMBER.fullmatch(text):
        return ("latest", -int(text)) if text.startswith("-") else (int(text), None)
    if text.startswith(("@", "s@")):
        return f"@{time_ms(text.partition('@')[2], now_ms)}", None
    raise CliError(Exit.USAGE, f"-O {text}: not a position; write beginning, end, 47, -3, @TIME, s@TIME or e@TIME")
