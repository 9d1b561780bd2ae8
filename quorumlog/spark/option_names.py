"""Sorts the options of a read or a write: the connector's own, and the client's under `kafka.` or `quorumlog.`.

Spark passes every name in lower case. An unknown name raises an error that names the nearest option, so that a typo
does not go unnoticed.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorumlog.client.errors import ConfigError

PREFIXES = ("kafka.", "quorumlog.")
SERVERS = "bootstrap.servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNames:
    """own: of the connector. client: of the client, underscored. not_yours: names of Kafka's clients that are refused,
    and what to do instead. aliases: names of Kafka's for own ones, in lower case; they go before these. refused: own
    names that are of no use here, in lower case, and why. ignored: in lower case, what Spark itself adds."""

    own: Sequence[str]
    client: Sequence[str]
    not_yours: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    def sort(self, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
        """The connector's options by their spelling, and the client's by their underscored names. Raises
        ConfigError."""
        spelling = {name.lower(): name for name in self.own}
        own: dict[str, str] = {}
        aliased: dict[str, str] = {}
        client: dict[str, Any] = {}
        for key, value in given.items():
            name = key.lower()
            if name in (SERVERS, *(prefix + SERVERS for prefix in PREFIXES)):
                client["bootstrap_servers"] = value
            elif name in self.aliases:
                aliased[self.aliases[name]] = value
            elif name in spelling:
                own[spelling[name]] = value
            elif name.startswith(PREFIXES):
                client[self._client_name(key, name.partition(".")[2])] = value
            elif name in self.refused:
                raise ConfigError(f"option {key!r} {self.refused[name]}")
            elif name.replace(".", "_") in self.client:
                client[self._client_name(key, name)] = value
            elif name not in self.ignored:
                raise ConfigError(self._refusal(key))
        return own | aliased, client

    def _client_name(self, key: str, given: str) -> str:
        """given: the key in lower case, without its prefix."""
        name = given.replace(".", "_")
        if name in self.not_yours:
            raise ConfigError(f"option {key!r} cannot be set here: {self.not_yours[name]}")
        if name not in self.client:
            raise ConfigError(self._refusal(key))
        return name

    def _refusal(self, key: str) -> str:
        name = key.lower()
        prefix = next((p for p in PREFIXES if name.startswith(p)), "")
        known = [prefix + field.replace("_", ".") for field in self.client] if prefix else list(self.own)
        spelling = {candidate.lower(): candidate for candidate in known}
        near = difflib.get_close_matches(name, list(spelling), n=1)
        hint = f"did you mean {spelling[near[0]]!r}?" if near else f"known options: {', '.join(known)}"
        return f"unknown option {key!r}; {hint}"


def one_of(own: Mapping[str, str], option: str, words: Sequence[str]) -> str:
    """An option that takes one of these words, in any case. The first word is the default. Raises ConfigError."""
    spelling = {word.lower(): word for word in words}
    given = own.get(option, words[0]).lower()
    if given not in spelling:
        raise ConfigError(f"{option} must be one of {', '.join(words)}: {own[option]!r}")
    return spelling[given]
