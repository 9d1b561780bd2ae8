"""Changes of one setting: a new value, None for its default, or words added to or removed from a list."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.messages.admin import AlterableConfig

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3  # Kafka's numbers of operations


@dataclass(frozen=True, slots=True)
class Append:
    """words: separated by commas. Words that are in the list already keep their place."""

    words: str


@dataclass(frozen=True, slots=True)
class Subtract:
    """words: separated by commas."""

    words: str


ConfigChange = str | Append | Subtract | None


def alterable(name: str, change: ConfigChange) -> AlterableConfig:
    match change:
        case None:
            return AlterableConfig(name=name, operation=DELETE)
        case Append(words):
            return AlterableConfig(name=name, operation=APPEND, value=words)
        case Subtract(words):
            return AlterableConfig(name=name, operation=SUBTRACT, value=words)
        case str():
            return AlterableConfig(name=name, operation=SET, value=change)
