"""Why a broker is fenced: it starts, it was shut down in order, or it was lost. Only events tell these apart."""

from __future__ import annotations

from enum import Enum

from quorumlog.explaining.facts import BrokerFact, Facts
from quorumlog.explaining.finding import Evidence
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.messages.events import Event

_LIFE = ("broker.registered", "broker.unfenced", "broker.leaving", "broker.fenced")


class Away(Enum):
    STARTING = "it has registered and catches up before it serves"
    SHUT_DOWN = "it was shut down in order"
    LOST = "it was lost: nothing was heard of it for its session, or its process ended without a word"
    UNKNOWN = "this cluster does not tell why"


def why_away(facts: Facts, broker: BrokerFact, limits: Thresholds) -> tuple[Away, tuple[Event, ...]]:
    """And the events that say so. The newest registration begins the life that counts."""
    life = facts.events_of(f"broker/{broker.node_id}", *_LIFE)
    begun = max((at for at, one in enumerate(life) if one.kind == "broker.registered"), default=0)
    life = life[begun:]
    leaving = next((one for one in life if one.kind == "broker.leaving"), None)
    fenced = next((one for one in reversed(life) if one.kind == "broker.fenced"), None)
    if leaving is not None:
        return Away.SHUT_DOWN, tuple(one for one in (leaving, fenced) if one is not None)
    if broker.leaving:
        return Away.SHUT_DOWN, () if fenced is None else (fenced,)
    if fenced is not None:
        return Away.LOST, (fenced,)
    if life and life[0].kind == "broker.registered" and facts.at_ms - life[0].at_ms <= limits.starting_ms:
        return Away.STARTING, (life[0],)
    return Away.UNKNOWN, ()


def since_ms(facts: Facts, events: tuple[Event, ...]) -> int:
    """For how long it is away, as its events say; 0: they do not say."""
    return max((facts.at_ms - one.at_ms for one in events), default=0)


def read(facts: Facts, text: str, call: str) -> Evidence:
    """What a call told at the time of the reading."""
    return Evidence(text=text, source=call, at_ms=facts.at_ms)


def bring_back(facts: Facts, node_ids: tuple[int, ...]) -> str:
    """What an operator does about brokers that do not run."""
    if not node_ids:
        return "quorumlog broker list"
    if facts.is_local:
        return " && ".join(f"quorumlog restart {one}" for one in node_ids)
    names = ", ".join(map(str, node_ids))
    return f"start the process of broker {names} on its host; quorumlog broker describe {node_ids[0]} shows it"
