"""From the command line to the facts of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumlog_cli.connecting.connect import connected, find_target
from quorumlog_cli.terminal import output
from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.explaining.facts import Facts

OverOption = Annotated[
    float,
    typer.Option("--over", metavar="SECONDS", min=0, help="Between two looks at groups that are behind."),
]
OVER_S = 10.0
ASK_TIMEOUT_MS = 5_000


def read(
    servers: str | None,
    profile: str | None,
    options: list[str] | None,
    *,
    parts: Iterable[str],
    groups: Iterable[str] | None = None,
    over_s: float = OVER_S,
) -> Facts:
    """What cannot be reached is a fact, too. Raises CliError for what a person has to mend in the options."""
    from quorumlog.client.errors import AuthenticationFailed, QuorumlogError
    from quorumlog.explaining.causes.clients import is_expired
    from quorumlog.explaining.facts import Facts
    from quorumlog.explaining.reading import read_facts
    from quorumlog.rpc.transport import RpcError

    target = find_target(servers, profile, options)
    is_local = target.data_dir is not None
    try:
        with connected(target, default_api_timeout_ms=ASK_TIMEOUT_MS) as cluster:
            return read_facts(
                cluster.admin,
                wall_ms=wall_ms,
                sleep_s=time.sleep,
                parts=parts,
                groups=groups,
                over_s=over_s,
                is_local=is_local,
                begin=side_by_side,
                now_ms=now_ms,
            )
    except CliError as error:
        if error.code not in (Exit.UNREACHABLE, Exit.UNHEALTHY):
            raise
        return Facts(at_ms=wall_ms(), unreachable=error.message, is_local=is_local)
    except (QuorumlogError, RpcError, TimeoutError) as error:
        if isinstance(error, AuthenticationFailed) and not is_expired(str(error)):
            raise  # who asks is wrong, and not the cluster
        return Facts(at_ms=wall_ms(), unreachable=f"{type(error).__name__}: {error}", is_local=is_local)


def side_by_side(call: Callable[[], Any]) -> Callable[[], Any]:
    """Starts the call on a thread. What is returned waits for it, and gives its result or raises its error."""
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:
            answers.put((None, error))

    def result() -> Any:
        value, error = answers.get()
        if error is not None:
            raise error
        return value

    Thread(target=run, name="quorumlog-ask", daemon=True).start()
    return result


def say_cuts(servers: str | None, profile: str | None, options: list[str] | None) -> None:
    """Links that `net cut` has cut are in no answer of a node: nothing that is found would name them."""
    from quorumlog.testing.cuts import cut_links, described
    from quorumlog.testing.layout import has_cluster
    from quorumlog.testing.nodes import LocalNodes

    root = find_target(servers, profile, options).data_dir
    if root is not None and has_cluster(root) and (cut := described(cut_links(LocalNodes.open(root).layout))):
        output.say(f"cut by net cut: {', '.join(cut)}; do first: quorumlog net heal")


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    return round(time.time() * 1_000)
