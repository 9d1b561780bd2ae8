"""Carries a roll out: looks again and again, runs the restarts, and hands both to `Roll`. It decides nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, assert_never

from quorumlog.configs.rolls import ROLLS_UNDER_WAY
from quorumlog.errors import ErrorCode
from quorumlog.rolling.picture import Node, Picture
from quorumlog.rolling.roll import (
    Blind,
    ClaimFailed,
    CommandEnded,
    ElectPreferred,
    End,
    Event,
    Interrupted,
    Looked,
    Restart,
    Roll,
    Tell,
)
from quorumlog.rolling.turn import Claim, Release
from quorumlog.rpc.transport import RpcError

if TYPE_CHECKING:
    from quorumlog.client.administration.config_change import Append, Subtract
    from quorumlog.client.blocking_admin import Admin

LOOK_EVERY_S = 0.25


class Restarter(Protocol):
    """Restarts one node at a time, beside the looks."""

    def begin(self, node: Node) -> None:
        """Does not wait."""

    def ended(self) -> str | None:
        """None: it goes on. "": the node was restarted, as far as it can tell. Otherwise why it was not."""


class Cluster(Protocol):
    """What a roll asks of the cluster."""

    def look(self) -> Picture:
        """Raises QuorumlogError, RpcError, TimeoutError."""

    def elect(self, effect: ElectPreferred) -> None:
        """Raises as `look`."""

    def claim(self, effect: Claim) -> None:
        """Raises as `look`; MarksUnknown."""

    def release(self, effect: Release) -> None:
        """Raises as `look`."""


class MarksUnknown(Exception):
    """The cluster has no setting for the marks of rolls: it is older, or Apache Kafka."""


class AskedCluster:
    """By an admin client."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def look(self) -> Picture:
        from quorumlog.rolling.reading import read_picture

        return read_picture(self._admin)

    def elect(self, effect: ElectPreferred) -> None:
        from quorumlog.client.administration.partitions import ElectionType

        self._admin.elect_leaders(ElectionType.PREFERRED, effect.partitions)

    def claim(self, effect: Claim) -> None:
        from quorumlog.client.administration.config_change import Append
        from quorumlog.client.errors import RequestFailed

        try:
            if effect.instead_of:
                self.release(Release(mark=effect.instead_of))
            self._change(Append(effect.mark))
        except RequestFailed as error:
            if error.code is not ErrorCode.INVALID_CONFIG:
                raise
            raise MarksUnknown(str(error)) from None

    def release(self, effect: Release) -> None:
        from quorumlog.client.administration.config_change import Subtract

        self._change(Subtract(effect.mark))

    def _change(self, change: Append | Subtract) -> None:
        from quorumlog.client.admin import BROKER_RESOURCE

        self._admin.alter_configs("", {ROLLS_UNDER_WAY: change}, resource_type=BROKER_RESOURCE)


def carry_out(
    roll: Roll,
    cluster: Cluster,
    restarter: Restarter,
    *,
    now_ms: Callable[[], int],
    sleep_s: Callable[[float], None],
    tell: Callable[[str], None],
    is_interrupted: Callable[[], bool] = lambda: False,
) -> End:
    """Until the roll has ended. Raises nothing that the cluster's answers cause."""
    runs, told_interrupt = False, False
    while True:
        events = deque[Event]()
        if is_interrupted() and not told_interrupt:
            told_interrupt = True
            events.append(Interrupted())
        if runs and (failure := restarter.ended()) is not None:
            assert roll.under_way is not None
            runs = False
            events.append(CommandEnded(node_id=roll.under_way, failure=failure))
        events.append(_look(cluster))
        while events:
            for effect in roll.step(events.popleft(), now_ms()):
                match effect:
                    case Claim():
                        events.extend(_claim(cluster, effect))
                    case Restart():
                        tell(f"restarting node {effect.node.node_id}")
                        restarter.begin(effect.node)
                        runs = True
                    case ElectPreferred():
                        _elect(cluster, effect, tell)
                    case Tell():
                        tell(effect.text)
                    case Release():
                        release(cluster, effect, tell)
                    case End():
                        return effect
                    case _:
                        assert_never(effect)
        sleep_s(LOOK_EVERY_S)


def _look(cluster: Cluster) -> Looked | Blind:
    try:
        return Looked(picture=cluster.look())
    except _unanswered() as error:
        return Blind(reason=_said(error))


def _claim(cluster: Cluster, effect: Claim) -> list[Event]:
    try:
        cluster.claim(effect)
    except MarksUnknown as error:
        return [ClaimFailed(reason=str(error), is_unknown=True)]
    except _unanswered() as error:
        return [ClaimFailed(reason=f"the mark of this roll was not written: {_said(error)}")]
    return []


def _elect(cluster: Cluster, effect: ElectPreferred, tell: Callable[[str], None]) -> None:
    try:
        cluster.elect(effect)
    except _unanswered() as error:
        tell(f"preferred leaders of {len(effect.partitions)} partitions were not elected: {_said(error)}")


def release(cluster: Cluster, effect: Release, tell: Callable[[str], None]) -> None:
    """Also for a caller that leaves before the roll has ended. Raises nothing that the cluster's answers cause."""
    try:
        cluster.release(effect)
    except _unanswered() as error:
        tell(
            f"the mark {effect.mark} of this roll is left: {_said(error)}; "
            f"the next roll needs --instead-of {effect.mark}"
        )


def _unanswered() -> tuple[type[Exception], ...]:
    """What an answer, or none, raises. Asked for late, so that the client is imported where one is at work."""
    from quorumlog.client.errors import QuorumlogError

    return QuorumlogError, RpcError, TimeoutError


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
