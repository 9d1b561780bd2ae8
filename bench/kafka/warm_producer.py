"""One Java virtual machine that runs Kafka's kafka-producer-perf-test again and again (WarmProducer.java).

The tool's own command starts a new virtual machine for each run. In its first seconds that one needs many times the
processor time per MB, which it takes from the measured nodes on the same processors. With one machine, all rounds of
both clusters have the same client, and it is as warm as all the rounds before have made it.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from bench.kafka.clients import PERF_TIMEOUT_S
from bench.peers.kafka_tools import QUIET, Kafka, ToolFailed

SOURCE = Path(__file__).with_name("WarmProducer.java")  # java compiles it at each start; needs a JDK, not only a JRE
ENDED = "run ended"
HEAP = ("-Xmx512M",)  # as in kafka-producer-perf-test.sh


class WarmProducer:
    """The virtual machine runs from creation to `close`. One run at a time. source: another program of that kind."""

    def __init__(self, kafka: Kafka, source: Path = SOURCE) -> None:
        self._source = source
        self._process = subprocess.Popen(
            kafka.command(str(source), options=(*HEAP, *QUIET)),
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def __enter__(self) -> WarmProducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        """The tool's output, line by line as it comes. Raises ToolFailed if the virtual machine ends, also because the
        run needs longer than PERF_TIMEOUT_S; no further run is possible then."""
        assert self._process.stdin is not None and self._process.stdout is not None
        said: list[str] = []
        deadline = threading.Timer(PERF_TIMEOUT_S, self._process.kill)
        deadline.start()
        try:
            self._process.stdin.write("\t".join(arguments) + "\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                if line.strip() == ENDED:
                    return
                said.append(line)
                yield line
        except BrokenPipeError:
            pass  # it has ended; what it said is read below
        finally:
            deadline.cancel()
        said += self._process.stdout
        raise ToolFailed(self._source.stem, self._process.wait(), "".join(said))

    def close(self) -> None:
        """Idempotent."""
        self._process.kill()
        self._process.communicate()
