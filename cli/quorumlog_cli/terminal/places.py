"""Parses where reading starts and stops, in the syntax of kcat and rpk.

    beginning, earliest   end, latest   47 (an offset)   -3 (the last three)   @TIME   s@TIME (start)   e@TIME (stop)

TIME is milliseconds since 1970, a date or date and time (2026-02-14, 2026-02-14T10:30:00Z; UTC if no zone is given), or
a time ago such as -2h or 2h (s, m, h, d) or PT2H30M (ISO 8601). --since TIME and --until TIME are s@TIME and e@TIME.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from quorumlog_cli.terminal.errors import CliError, Exit

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO = re.compile(r"-?(\d+)([smhd])", re.ASCII)
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


def time_ms(text: str, now_ms: int) -> int:
    """A TIME in ms since 1970. Raises CliError."""
    return _time_ms(text, now_ms)


def parse_places(texts: list[str], *, to_end: bool, now_ms: int) -> Range:
    """texts: the values of all -O; a later one wins. to_end: stop at the current end. Raises CliError."""
    start: int | str = "earliest"
    last: int | None = None
    stop: str | None = "latest" if to_end else None
    for text in texts:
        if text.startswith("e@"):
            stop = f"@{_time_ms(text[2:], now_ms)}"
            continue
        start, last = _start(text, now_ms)
    return Range(start, last, stop)


def _start(text: str, now_ms: int) -> tuple[int | str, int | None]:
    if text in _NAMES:
        return _NAMES[text], None
    if _NUMBER.fullmatch(text):
        return ("latest", -int(text)) if text.startswith("-") else (int(text), None)
    if text.startswith(("@", "s@")):
        return f"@{_time_ms(text.partition('@')[2], now_ms)}", None
    raise CliError(Exit.USAGE, f"-O {text}: not a position; write beginning, end, 47, -3, @TIME, s@TIME or e@TIME")


def _time_ms(text: str, now_ms: int) -> int:
    if ago := _AGO.fullmatch(text):
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    if _NUMBER.fullmatch(text) and not text.startswith("-"):
        return int(text)
    if text[:1] in ("P", "p"):
        return max(0, now_ms - _duration_ms(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CliError(
            Exit.USAGE, f"{text!r} is not a time; write ms since 1970, 2026-02-14T10:30:00Z, or -2h"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


def _duration_ms(text: str) -> int:
    from quorumlog.client.errors import ConfigError
    from quorumlog.client.options import parse_duration_ms

    try:
        return parse_duration_ms(text)
    except ConfigError as error:
        raise CliError(Exit.USAGE, str(error)) from None
