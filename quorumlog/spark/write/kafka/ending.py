"""Ends the transactions of a decision, whoever meets it. Pure.

The first child decides for all: it is ended before the others. If it was aborted by time, nothing has committed and
nothing will: the others are aborted, and the batch can be decided anew. Its fate is one and the same for everybody who
looks, so two that do this at once never work against each other. The first is the one whose time is over first, so a
mixture needs a process that dies between the first end and the last, and nobody who comes back in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorumlog.spark.write.kafka.checks import Overrides
from quorumlog.spark.write.kafka.decisions import Child, Decision
from quorumlog.spark.write.kafka.errors import DecidedTransactionLost, NotEnded
from quorumlog.spark.write.kafka.steps import End, Fate, Fates, Now, Steps, Verdict, Wait

ADVICE = "Nobody came back to end them within transactionTimeout; a longer one leaves more time."


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """min_left_ms: of each transaction's time, when a batch is decided. end_timeout_ms: of all ends of a decision."""

    min_left_ms: int = 60_000
    end_timeout_ms: int = 60_000
    first_wait_ms: int = 20
    max_wait_ms: int = 1_000
    max_children: int = 10_000


def settle(decision: Decision | None, group: str, excused: Overrides, limits: Limits) -> Steps[Decision | None]:
    """The last decision that stands; nothing of it is open any more. Raises DecidedTransactionLost, NotEnded."""
    if decision is None or decision.ended:
        return decision
    fates = yield from _end_all(decision, group, limits)
    found = set(fates.values())
    if found == {Fate.ABORTED}:
        return decision.as_void()
    if found <= {Fate.COMMITTED} or excused.accept_lost == decision.sequence:
        return decision.as_ended()
    lost = [one for one in decision.children if fates[one.transactional_id] is not Fate.COMMITTED]
    raise DecidedTransactionLost(group, decision.sequence, lost, ADVICE)


def _end_all(decision: Decision, group: str, limits: Limits) -> Steps[Mapping[str, Fate]]:
    what = f"batch {decision.sequence} of {group}"
    first, rest = decision.children[:1], decision.children[1:]
    fates = yield from _end(first, True, what, limits)
    if rest:
        commits = Fate.ABORTED not in fates.values()
        fates = {**fates, **(yield from _end(rest, commits, what, limits))}
    return fates


def _end(children: tuple[Child, ...], commit: bool, what: str, limits: Limits) -> Steps[dict[str, Fate]]:
    """Until each has a fate. What is asked for twice changes nothing."""
    fates: dict[str, Fate] = {}
    began_ms = yield Now()
    wait_ms, pending = limits.first_wait_ms, children
    while pending:
        verdicts: Mapping[str, Verdict] = yield End(pending, commit)
        as_asked = Fate.COMMITTED if commit else Fate.ABORTED
        fates.update((name, as_asked) for name, verdict in verdicts.items() if verdict is Verdict.ENDED)
        unclear = tuple([one for one in pending if verdicts[one.transactional_id] is Verdict.UNCLEAR])
        if unclear:
            told: Mapping[str, Fate] = yield Fates(unclear)
            fates.update((name, fate) for name, fate in told.items() if fate is not Fate.OPEN)
        pending = tuple([one for one in pending if one.transactional_id not in fates])
        if pending:
            waited_ms = (yield Now()) - began_ms
            if waited_ms > limits.end_timeout_ms:
                raise NotEnded(
                    f"{what} is decided, and {len(pending)} of its transactions did not end in {waited_ms} ms, such as "
                    f"{pending[0].transactional_id}: see whether the cluster is healthy, and start the query again"
                )
            yield Wait(wait_ms)
            wait_ms = min(2 * wait_ms, limits.max_wait_ms)
    return fates
