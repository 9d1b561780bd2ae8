"""Options that choose among known words, e.g. --state."""

from __future__ import annotations

from quorumlog_cli.terminal.errors import CliError, Exit


def one_of(option: str, given: list[str] | None, allowed: tuple[str, ...]) -> list[str]:
    """In any case; several with commas between them, as Kafka's tool takes them. Raises CliError(USAGE)."""
    words = [word.strip() for one in given or () for word in one.split(",")]
    known = {word.lower(): word for word in allowed}
    for word in words:
        if word.lower() not in known:
            raise CliError(Exit.USAGE, f"{option} {word}: it is none of {', '.join(allowed)}")
    return [known[word.lower()] for word in words]
