"""What a console is told when it is started, and the limits that it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Login(Enum):
    """Whether people log in. ASK_CLUSTER: if the cluster's settings say that a listener asks its clients."""

    ALWAYS = "always"
    NEVER = "never"
    ASK_CLUSTER = "ask the cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Times in ms. stale_ms: a look that is older is said to be old, and nothing of it is said to be fine.

    sessions: of all people together; the one that was used least recently goes for a new one. failures_a_minute: of
    logins, from one address; all_failures_a_minute: from everywhere. tails: live tails at a time, of all people; each
    keeps tail_buffer_records at most, gives tail_records_a_second at most, and counts the rest as skipped. searches:
    looks for records at a time; each reads for search_ms and search_records at most, and can go on.
    """

    look_every_ms: int = 5_000
    stale_ms: int = 15_000
    sessions: int = 32
    idle_ms: int = 30 * 60_000
    session_ms: int = 12 * 3_600_000
    failures_a_minute: int = 5
    all_failures_a_minute: int = 60
    answer_ms: int = 5_000
    first_look_ms: int = 3_000
    form_bytes: int = 8_192
    connections: int = 200
    tails: int = 20
    tail_buffer_records: int = 500
    tail_records_a_second: int = 100
    searches: int = 4
    search_ms: int = 2_500
    search_records: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """client: options of quorumlog's clients, bootstrap_servers among them. host_names: what the header Host may say
    beside numbers and localhost. certificate, key: PEM files; empty: plain HTTP. registry: options of a schema registry
    that all who are logged in see records by; empty: there is none.
    """

    client: Mapping[str, Any]
    login: Login = Login.ASK_CLUSTER
    host_names: tuple[str, ...] = ()
    certificate: str = ""
    key: str = ""
    registry: Mapping[str, Any] = field(default_factory=dict, repr=False)
    limits: Limits = field(default_factory=Limits)
