"""Asks the cluster for what a plan needs, and asks again where it did not answer, as Spark's Kafka source does.

Every try begins with a new client: the old one may hold on to brokers that are gone. A mistake of the user is told at
once.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from quorumlog.client.errors import NoProtocol, RequestFailed, TopicReplaced, Unavailable

Answer = TypeVar("Answer")


def asked(
    ask: Callable[[], Answer],
    *,
    tries: int,
    interval_ms: int,
    begin_anew: Callable[[], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """What `ask` returns. Raises what the last of `tries` raised, and every error that time does not mend.

    interval_ms: before each further try. sleep: takes seconds.
    """
    for left in range(tries - 1, 0, -1):
        try:
            return ask()
        except (Unavailable, RequestFailed, TopicReplaced) as error:
            if isinstance(error, NoProtocol):
                raise
            warnings.warn(f"the cluster did not say what there is, {left} more tries: {error}", stacklevel=2)
        begin_anew()
        sleep(interval_ms / 1000)
    return ask()
