"""Who hears of logins at a node's listeners, and how many there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorumlog.security.login import Login, OnLogin, tell_nobody
from quorumlog.security.principal import Principal


@dataclass(slots=True)
class LoginNotice:
    """Shared by a node and its edges. The node sets `told` and `may_describe`; the edges set `strangers`, and the
    port of metrics adds to `counters`.

    counts: by mechanism, of which a listener has few, and whether they failed. strangers: connections of clients that
    have not logged in yet. counters: how often what happened at ports beside the listeners, by the words of
    `Strangers.told`. may_describe: who may read the schema of gRPC and the pages of the HTTP port, from
    which host.
    """

    told: OnLogin = tell_nobody
    strangers: Callable[[], int] = int
    counters: list[Callable[[], Mapping[str, int]]] = field(default_factory=list)
    may_describe: Callable[[Principal, str], bool] = lambda _principal, _host: True
    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def strangers_told(self) -> Mapping[str, int]:
        """The sums of `counters`."""
        found: Counter[str] = Counter()
        for told in self.counters:
            found.update(told())
        return found

    def tell(self, login: Login, reason: str) -> None:
        self.counts[login.mechanism, login.failed] += 1
        self.told(login, reason)
