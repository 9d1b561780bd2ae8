"""The delta between two images, for a node that was given a snapshot in place of the records in between.

    delta = yield from delta_between(base, image)        # steps

Its lists are those of the replayed records, without entries that are now as they were before. One rule differs. A
topic that only `base` has counts as deleted if `image` remembers its deletion. Of any other such topic nothing is
known: it has vanished, and its replicas are set aside, not deleted.
"""

from __future__ import annotations

from itertools import chain
from typing import TypeVar

from immutables import Map

from quorumlog.slices import Sliced
from quorumlog_quorum.metadata.delta import Delta, Touched
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.registration import PartitionRegistration

PARTITIONS_PER_STEP = 4_000  # to compare one takes some 1 us
ENTRIES_PER_STEP = 4_000  # likewise
K = TypeVar("K")
V = TypeVar("V")


def delta_between(base: Image, image: Image) -> Sliced[Delta]:
    """In steps: each yield ends one, and the delta is returned after the last. base: not newer than `image`."""
    assert base.offset <= image.offset, f"{base.offset} > {image.offset}"
    touched = Touched()
    touched.brokers.update(_different(base.brokers, image.brokers))
    touched.configs.update(_different(base.configs, image.configs))
    yield from _compare_access(base, image, touched)
    yield from _compare_topics(base, image, touched)
    return Delta.leading_to(base, image, touched)


def delta_from_empty(image: Image) -> Delta:
    """The delta from the empty image to `image`, at once."""
    steps = delta_between(EMPTY, image)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            delta: Delta = end.value
            return delta


def _compare_access(base: Image, image: Image, touched: Touched) -> Sliced[None]:
    """Fill in what `touched` says of rules, credentials and quotas."""
    if base.access is image.access:
        return
    for count, key in enumerate(chain(image.access, base.access)):
        if base.access.get(key) is not image.access.get(key):
            touched.access.setdefault(str(key[0]), {})[key] = None
        if count % ENTRIES_PER_STEP == ENTRIES_PER_STEP - 1:
            yield


def _compare_topics(base: Image, image: Image, touched: Touched) -> Sliced[None]:
    """Fill in what `touched` says of topics and partitions."""
    work = 0
    for topic in image.topics.values():
        before = base.topics.get(topic.id)
        if before is topic:
            continue
        old: Map[int, PartitionRegistration] = Map() if before is None else before.partitions
        changed: dict[int, None] = {}
        for index, partition in topic.partitions.items():
            if old.get(index) != partition:
                changed[index] = None
            work += 1
            if work >= PARTITIONS_PER_STEP:
                yield
                work = 0
        if changed:
            touched.partitions[topic.id] = changed
        if changed or before is None:
            touched.topics[topic.id] = None
    gone = [topic_id for topic_id in base.topics if topic_id not in image.topics]
    touched.topics.update(dict.fromkeys(gone))
    touched.vanished.update(dict.fromkeys(topic_id for topic_id in gone if topic_id not in image.deleted))


def _different(old: Map[K, V], new: Map[K, V]) -> dict[K, None]:
    """Keys that only one of the two has, or with another value."""
    keys = {**dict.fromkeys(old), **dict.fromkeys(new)}
    return {key: None for key in keys if old.get(key) != new.get(key)}
