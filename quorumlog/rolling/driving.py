"""Carries a roll out: looks again and again, runs the restarts, and hands both to `Roll`. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, assert_never

from quorumlog.rolling.picture import Node, Picture
from quorumlog.rolling.roll import Blind, CommandEnded, ElectPreferred, End, Interrupted, Looked, Restart, Roll, Tell
from quorumlog.rpc.transport import RpcError

if TYPE_CHECKING:
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
        events: list[Looked | Blind | CommandEnded | Interrupted] = []
        if is_interrupted() and not told_interrupt:
            told_interrupt = True
            events.append(Interrupted())
        if runs and (failure := restarter.ended()) is not None:
            assert roll.under_way is not None
            runs = False
            events.append(CommandEnded(node_id=roll.under_way, failure=failure))
        events.append(_look(cluster))
        for event in events:
            for effect in roll.step(event, now_ms()):
                match effect:
                    case Restart():
                        tell(f"restarting node {effect.node.node_id}")
                        restarter.begin(effect.node)
                        runs = True
                    case ElectPreferred():
                        _elect(cluster, effect, tell)
                    case Tell():
                        tell(effect.text)
                    case End():
                        return effect
                    case _:
                        assert_never(effect)
        sleep_s(LOOK_EVERY_S)


def _look(cluster: Cluster) -> Looked | Blind:
    from quorumlog.client.errors import QuorumlogError

    try:
        return Looked(picture=cluster.look())
    except (QuorumlogError, RpcError, TimeoutError) as error:
        return Blind(reason=str(error) or type(error).__name__)


def _elect(cluster: Cluster, effect: ElectPreferred, tell: Callable[[str], None]) -> None:
    from quorumlog.client.errors import QuorumlogError

    try:
        cluster.elect(effect)
    except (QuorumlogError, RpcError, TimeoutError) as error:
        tell(f"preferred leaders of {len(effect.partitions)} partitions were not elected: {error}")
