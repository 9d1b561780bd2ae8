"""When a partition counts as hot: by a look that is long enough, and by bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.explaining.judging import judge
from quorumlog.explaining.reading import read_facts
from quorumlog.explaining.thresholds import Thresholds

TURN = 800  # records of 20 bytes, of which the usual partitioner gives one partition a batch


class OneTopic:
    """The calls of an admin client for a topic of three partitions that one broker leads; all others fail.

    takes: which partition a record goes to. A second has `rate` records of `size` bytes.
    """

    def __init__(self, rate: int, size: int, takes: Any) -> None:
        self.now_ms, self._rate, self._size, self._takes = 0, rate, size, takes
        self.sleeps: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_ms += round(seconds * 1_000)

    def ends(self) -> dict[int, int]:
        found = dict.fromkeys(range(3), 0)
        for number in range(self.now_ms * self._rate // 1_000):
            found[self._takes(number)] += 1
        return found

    def __getattr__(self, name: str) -> Any:
        def call(*_args: object, **_options: object) -> Any:
            ends = self.ends()
            parts = [_part(index) for index in ends]
            sizes = [
                SimpleNamespace(index=i, size_bytes=n * self._size, offset_lag=0, is_future=False)
                for i, n in ends.items()
            ]
            held = SimpleNamespace(path="/d", error_code=0, total_bytes=-1, usable_bytes=-1)
            held.topics = (SimpleNamespace(name="t", partitions=sizes),)
            answers = {
                "describe_cluster": SimpleNamespace(brokers=()),
                "list_topics": [SimpleNamespace(name="t", partitions=parts)],
                "describe_log_dirs": {1: (held,)},
                "list_offsets": {("t", index): SimpleNamespace(offset=end) for index, end in ends.items()},
            }
            if name not in answers:
                raise RequestFailed(ErrorCode.UNSUPPORTED_VERSION, name)
            return answers[name]

        return call


def _part(index: int) -> SimpleNamespace:
    return SimpleNamespace(
        index=index, leader_id=1, leader_epoch=0, replicas=(1,), isr=(1,), eligible_leader_replicas=(),
        last_known_elr=(), leader_recovery_state=0,
    )  # fmt: skip


def judged(admin: OneTopic) -> list[str]:
    facts = read_facts(admin, wall_ms=lambda: admin.now_ms, sleep_s=admin.sleep, parts={"ends"}, over_s=10.0)  # type: ignore[arg-type]
    return [one.cause for one in judge(facts, Thresholds(), ["perf"])]


def test_batches_without_keys_make_no_partition_hot() -> None:
    admin = OneTopic(300, 20, lambda number: number // TURN % 3)
    assert judged(admin) == [] and admin.sleeps == [1.0, 10.0]


def test_a_partition_that_gets_nearly_all_is_hot() -> None:
    admin = OneTopic(1_000, 500, lambda number: 1 if number % 10 else 2)
    assert judged(admin) == ["partition.hot"] and admin.sleeps == [1.0, 10.0]


def test_an_even_load_and_a_slow_one_are_looked_at_for_a_second_only() -> None:
    for admin in (OneTopic(3_000, 500, lambda number: number % 3), OneTopic(50, 500, lambda _: 0)):
        assert judged(admin) == [] and admin.sleeps == [1.0]


def test_ends_that_nobody_tells_are_asked_for_once() -> None:
    """A broker that hangs takes seconds each time, and a look has to end within half a minute."""
    asked: list[str] = []

    class Hung(OneTopic):
        def list_offsets(self, *_args: object, **_options: object) -> None:
            asked.append("list_offsets")
            raise RequestFailed(ErrorCode.REQUEST_TIMED_OUT, "it hangs")

    admin = Hung(0, 0, lambda _: 0)
    facts = read_facts(
        admin,  # type: ignore[arg-type]
        wall_ms=lambda: admin.now_ms,
        sleep_s=admin.sleep,
        parts={"ends", "transactions"},
    )
    assert asked == ["list_offsets"] and "ends of partitions" in facts.unknown and facts.transactions == ()
