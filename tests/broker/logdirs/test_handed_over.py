"""What the writer would do with a partition's files waits while a job beside it has them."""

from __future__ import annotations

from quorumlog_broker.logdirs.handed_over import HandedOver
from tests.rules import rule

A, B = ("a", 0), ("b", 0)


@rule("storage 11.2")
def test_calls_wait_in_their_order_and_those_of_other_partitions_do_not() -> None:
    files, done = HandedOver(), list[str]()
    files.hand_over(A)
    for name in ("delete", "create"):
        files.when_here(A, lambda name=name: done.append(name))  # type: ignore[misc]
    files.when_here(B, lambda: done.append("other"))
    assert done == ["other"] and A in files and len(files) == 1
    files.give_back(A)
    assert done == ["other", "delete", "create"] and A not in files


def test_what_waits_behind_a_second_handing_over_waits_on() -> None:
    files, done = HandedOver(), list[str]()
    files.hand_over(A)
    files.when_here(A, lambda: files.hand_over(A))
    files.when_here(A, lambda: done.append("delete"))
    files.give_back(A)
    assert done == [] and A in files
    files.give_back(A)
    assert done == ["delete"] and len(files) == 0


def test_it_is_told_once_nothing_is_handed_over() -> None:
    files, done = HandedOver(), list[str]()
    files.when_none(lambda: done.append("none yet"))
    files.hand_over(A)
    files.hand_over(B)
    files.when_none(lambda: done.append("none any more"))
    files.give_back(A)
    assert done == ["none yet"]
    files.give_back(B)
    assert done == ["none yet", "none any more"]
