"""What `max.connections.per.ip.overrides` says, by address: host names are looked up away from the event loop.

Kafka looks a name up once, when it is set, and takes its first address. Here all its addresses count, each by itself,
and a name that nobody knows keeps no broker from its start: it is warned of, and looked up again after a while.
Source: Kafka 4.3's `ConnectionQuotas.updateMaxConnectionsPerIpOverride`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from ipaddress import ip_address

from quorumlog.configs.live import connections_by_host
from quorumlog.settings.connections import ADDRESSES, CONNECTIONS_OF_ADDRESS

AGAIN_MS = 60_000  # between two looks at names that were not found
_log = logging.getLogger("quorumlog.node")

Found = Callable[[Mapping[str, Collection[str]]], None]  # the addresses of each name; none: nobody knows it
LookUp = Callable[[Collection[str], Found], None]  # returns at once, and tells later, in the same thread


class NamedAddresses:
    """look_up: finds the addresses of names. now_ms: monotonic."""

    def __init__(self, look_up: LookUp, now_ms: Callable[[], int]) -> None:
        self._look_up, self._now_ms = look_up, now_ms
        self._text = ""
        self._by_address: dict[str, int] = {}
        self._by_name: dict[str, int] = {}  # of names that are to be found yet
        self._again_ms = -1  # when they are looked up again; -1: they are being looked up, or there are none

    def of(self, text: str) -> Mapping[str, int]:
        """The maximum of each address. text: an allowed value; another one than before begins to be looked up."""
        if text != self._text:
            self._begin(text)
        elif 0 <= self._again_ms <= self._now_ms():
            self._ask()
        return self._by_address

    def _begin(self, text: str) -> None:
        self._text, self._by_address, self._by_name = text, {}, {}
        for host, count in connections_by_host(text).items():
            try:
                self._by_address[str(ip_address(host))] = count
            except ValueError:
                self._by_name[host] = count
        self._ask()

    def _ask(self) -> None:
        self._again_ms = -1
        if self._by_name:
            asked = self._text
            self._look_up(tuple(self._by_name), lambda found: self._found(asked, found))

    def _found(self, text: str, found: Mapping[str, Collection[str]]) -> None:
        """An address that stands in the setting itself goes before one of a name, and of two names the first."""
        if text != self._text:
            return  # it was changed meanwhile
        for name in [name for name in self._by_name if found.get(name)]:
            count = self._by_name.pop(name)
            for address in found[name]:
                self._by_address.setdefault(address, count)
        if self._by_name:
            self._again_ms = self._now_ms() + AGAIN_MS
            unknown = ", ".join(self._by_name)
            _log.warning(
                "%s: nobody knows the address of %s; %s counts there. The names are looked up again in %d s",
                ADDRESSES, unknown, CONNECTIONS_OF_ADDRESS, AGAIN_MS // 1000,
            )  # fmt: skip
