"""The header that a copy has more than its original: where its first home is, and in which topic it is a copy. Pure.

    quorumlog.origin: CLUSTER/TOPIC/PARTITION/OFFSET/COPY

CLUSTER is the id of the home's cluster, TOPIC of the topic there, COPY of the topic that holds the copy. It is always
the last header. An application that hands headers on to another topic makes no copy by that, since COPY is not that
topic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from quorumlog.ids import Offset

HEADER = "quorumlog.origin"
PATTERN = r"^([^/]+)/([A-Za-z0-9_-]{22})/([0-9]{1,10})/([0-9]{1,19})/([A-Za-z0-9_-]{22})$"  # also in Spark's rlike
_PARTS = re.compile(PATTERN)


class Home(NamedTuple):
    """A partition where records are written first. topic_id: as texts show it."""

    cluster_id: str
    topic_id: str
    partition: int


class Origin(NamedTuple):
    """copy_id: of the topic that holds the copy."""

    home: Home
    offset: Offset
    copy_id: str


def origin_of(headers: Sequence[tuple[str, bytes | None]], topic_id: str) -> Origin | None:
    """None: the record was written here first. topic_id: of the topic that it was read from."""
    if not headers or headers[-1][0] != HEADER or headers[-1][1] is None:
        return None
    found = _PARTS.match(headers[-1][1].decode("ascii", errors="replace"))
    if found is None or found[5] != topic_id:
        return None
    return Origin(Home(found[1], found[2], int(found[3])), Offset(int(found[4])), found[5])
