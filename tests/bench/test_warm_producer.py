"""The virtual machine that runs the tool again and again, with a script in its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from bench.kafka.warm_producer import WarmProducer
from bench.peers.kafka_tools import ToolFailed

SCRIPT = """
import sys
for number, line in enumerate(sys.stdin):
    arguments = line.rstrip("\\n").split("\\t")
    if arguments[0] == "end":
        sys.exit("no such option: " + arguments[1])
    print(number, arguments, "run ended within a line", flush=True)
    print("run ended", flush=True)
"""


class FakeKafka:
    def command(self, _main: str, _arguments: Sequence[str] = (), options: Sequence[str] = ()) -> list[str]:
        return [sys.executable, "-c", SCRIPT]


@pytest.fixture
def client() -> Iterator[WarmProducer]:
    kafka: Any = FakeKafka()
    with WarmProducer(kafka) as found:
        yield found


def test_one_process_makes_all_runs(client: WarmProducer) -> None:
    pid = client.pid
    assert list(client.run(["--topic", "a b"])) == ["0 ['--topic', 'a b'] run ended within a line\n"]
    assert list(client.run(["--x"])) == ["1 ['--x'] run ended within a line\n"]
    assert client.pid == pid


def test_a_run_that_ends_the_process_says_what_it_said(client: WarmProducer) -> None:
    with pytest.raises(ToolFailed, match="ended with 1: no such option: --y"):
        list(client.run(["end", "--y"]))
    with pytest.raises(ToolFailed):
        list(client.run(["--x"]))


def test_no_process_is_left(client: WarmProducer) -> None:
    client.close()
    client.close()
    with pytest.raises(ProcessLookupError):
        os.kill(client.pid, 0)
