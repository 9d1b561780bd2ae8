"""What a broker says of itself, and does for clients that name a topic which is not there."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.key import flag, maybe, setting, text


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    rack: str | None = setting(maybe("broker.rack", text, "The machine's rack; replicas are spread over racks."))
    auto_create_topics: bool = setting(
        flag("auto.create.topics.enable", True, "Create a topic that a client requests.")
    )
