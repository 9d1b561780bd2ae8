"""Of the blocking consumer, what is no plain call: polls, callbacks, iteration, the end.

Callbacks of a rebalance run in the thread that polls or closes, so they may call the consumer, too.

What a poll found counts as read when it has reached the caller's thread. So an interrupt (Ctrl-C) of a poll loses
nothing: what the caller never got is not committed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import re
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from quorumlog.client import real_edges as edge
from quorumlog.client.errors import CalledBack
from quorumlog.client.handover.loop import Blocking, on_loop

if TYPE_CHECKING:
    from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord, Offsets, Start
    from quorumlog.client.fetching.position import Chunk
    from quorumlog.client.group.listener import Callback
    from quorumlog.ids import TopicPartition

    BlockingCallback = Callable[[list[TopicPartition]], None]

T = TypeVar("T")
Job = Callable[[], None]


class CallbackConsumer(Blocking):
    """connect: makes its transport, on the clients' loop; None: `edge.make_transport`."""

    _client: AsyncConsumer

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        connect: Any = None,  # edge.Connect | None; so that options may also be given as **dict[str, object]
        **options: Any,
    ) -> None:
        own: dict[str, Any] = {} if connect is None else {"connect": connect}
        super().__init__(lambda: edge.consumer(dict(config or {}), **own, **options))
        self._jobs: list[queue.SimpleQueue[Job | None]] = []  # of the calls that wait; the last one runs callbacks
        self._calling_back: int | None = None  # the thread that runs one

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(commit=error is None)

    def subscribe(
        self,
        topics: str | Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assigned: BlockingCallback | None = None,
        on_revoked: BlockingCallback | None = None,
        on_lost: BlockingCallback | None = None,
        stop: Start | None = None,
    ) -> None:
        self._run(
            self._client.subscribe(
                topics,
                pattern=pattern,
                on_assigned=self._handed_over(on_assigned),
                on_revoked=self._handed_over(on_revoked),
                on_lost=self._handed_over(on_lost),
                stop=stop,
            )
        )

    def poll(self, max_records: int | None = None, timeout_ms: int = 500) -> list[ConsumedRecord]:
        records, taken = self._run(self._client.take_marked(max_records, timeout_ms))
        found = self._received(records, taken)
        for record in records[-1:]:
            self._client.gave(record, taken)
        return found

    def _received(self, records: list[ConsumedRecord], taken: Chunk | None) -> list[ConsumedRecord]:
        """As the asynchronous client's, in the caller's thread: deserializers may be slow."""
        reception = self._client.reception
        if reception is None:
            return records
        found, failure = reception.convert(records)
        if failure is not None:
            self._thread.run(on_loop(partial(self._client.put_back, records[len(found) :], taken)))
            if not found:
                raise failure
            del records[len(found) :]
        return reception.intercepted(found)

    def ask(self, question: Callable[[AsyncConsumer], Coroutine[Any, Any, T]]) -> T:
        """What `question` returns of the asynchronous consumer, on the clients' loop. An interrupt cancels it."""
        return self._run(question(self._client))

    def next_chunk(self, timeout_ms: int = 500) -> Chunk | None:
        chunk = self._run(self._client.take_chunk(timeout_ms))
        if chunk is not None:
            self._client.gave_chunk(chunk)
        return chunk

    def next_arrow(self, timeout_ms: int = 500, *, include_headers: bool = False) -> tuple[Chunk, Any] | None:
        found = self._run(self._client.take_arrow(timeout_ms, include_headers=include_headers))
        if found is not None:
            self._client.gave_chunk(found[0])
        return found

    def __iter__(self) -> Iterator[ConsumedRecord]:
        while not self._client.finished:
            records, taken = self._run(self._client.take_marked(timeout_ms=1_000))
            found = self._received(records, taken)
            for record in found:
                if not self._client.gave(record, taken):
                    break  # the application went elsewhere
                yield record
            else:
                for record in records[-1:] if found is not records else ():
                    self._client.gave(record, taken)  # an interceptor may have left it out

    def wakeup(self) -> None:
        """The poll that waits now, or else the next one that would wait, raises WokenUp. From any thread."""
        self._thread.loop.call_soon_threadsafe(self._client.wakeup)

    def commit_async(self, offsets: Offsets | None = None) -> concurrent.futures.Future[None]:
        """What polls have returned until now. Its future tells how it ended; nobody has to wait for it."""

        async def wait(task: asyncio.Task[None]) -> None:
            await task

        task = self._thread.run(on_loop(lambda: self._client.commit_async(offsets)))
        return asyncio.run_coroutine_threadsafe(wait(task), self._thread.loop)

    def close(self, *, commit: bool = True) -> None:
        """See AsyncConsumer.close."""
        if not self._closed:
            self._run(self._client.close(commit=commit))
            self._closed = True

    # --- callbacks in the caller's thread ---

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        """Wait for it, and meanwhile run the callbacks that it hands over. An interrupt cancels it."""
        if self._calling_back == threading.get_ident():
            call.close()
            raise CalledBack("a callback of a rebalance may not poll, subscribe, unsubscribe or close")
        jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._jobs.append(jobs)
        future = asyncio.run_coroutine_threadsafe(call, self._thread.loop)
        future.add_done_callback(lambda _: jobs.put(None))
        try:
            while (job := jobs.get()) is not None:
                job()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._jobs.remove(jobs)
        return future.result()

    def _handed_over(self, callback: BlockingCallback | None) -> Callback | None:
        if callback is None:
            return None

        async def hand_over(partitions: list[TopicPartition]) -> None:
            ended: concurrent.futures.Future[None] = concurrent.futures.Future()

            def job() -> None:
                self._calling_back = threading.get_ident()
                try:
                    callback(partitions)
                except Exception as error:  # raised by the poll, in its turn
                    ended.set_exception(error)
                else:
                    ended.set_result(None)
                finally:
                    self._calling_back = None

            self._jobs[-1].put(job)
            await asyncio.wrap_future(ended)

        return hand_over
