"""The life of a log directory: its state, and which of its writers, queues and answers still count.

    OPENING --opened--> ONLINE --failed--> FAILED --verification began--> VERIFYING --verified--> ONLINE
    OPENING --failed--> FAILED <--failed-- VERIFYING                      any state --closed--> CLOSED

Rules:

1. The first failed write or sync fails the directory. Only a verification from disk brings it back; nothing is retried.
2. A *generation* is one opening of the directory in this process. Writers, worker, queue and offset files are made for
   one generation. The first begins with OPENING, each later one with VERIFYING.
3. What happens in a generation that is over changes nothing. Its answers are no successes (`Generation.is_over`).
4. A failure is found on a writer's thread and reported on the node's loop. The writers of a generation share its
   `failure`, which stops them at once; the state follows on the loop.
5. A call that hangs (quorumlog_storage/writer/stall_watch.py) is found on the loop. When it comes back, its thread
   finds the failure of its generation: nothing of its turn is acknowledged, and no further job is begun.

`TRANSITIONS` is the whole machine. Pure: no I/O, no clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum

from quorumlog_storage.files.kept_errors import kept
from quorumlog_storage.writer.stall_watch import DirectoryStalled

TOLD_TRANSITIONS = 12  # the newest ones, in the text of an invalid transition


class DirectoryState(Enum):
    OPENING = "opening"  # being locked and read for the first time
    ONLINE = "online"
    FAILED = "failed"  # takes no work; what was under way has an unknown outcome on disk
    VERIFYING = "verifying"  # a new generation reads everything from disk
    CLOSED = "closed"  # the node stops, or never used it


class LifeEvent(Enum):
    OPENED = "opened"
    FAILED = "failed"
    VERIFICATION_BEGAN = "verification began"
    VERIFIED = "verified"
    CLOSED = "closed"


_S, _E = DirectoryState, LifeEvent

TRANSITIONS: dict[tuple[DirectoryState, LifeEvent], DirectoryState] = {
    (_S.OPENING, _E.OPENED): _S.ONLINE,
    (_S.OPENING, _E.FAILED): _S.FAILED,
    (_S.OPENING, _E.CLOSED): _S.CLOSED,
    (_S.ONLINE, _E.FAILED): _S.FAILED,
    (_S.ONLINE, _E.CLOSED): _S.CLOSED,
    (_S.FAILED, _E.FAILED): _S.FAILED,  # the other writer's failure, or an answer that was on its way
    (_S.FAILED, _E.VERIFICATION_BEGAN): _S.VERIFYING,
    (_S.FAILED, _E.CLOSED): _S.CLOSED,
    (_S.VERIFYING, _E.VERIFIED): _S.ONLINE,
    (_S.VERIFYING, _E.FAILED): _S.FAILED,
    (_S.VERIFYING, _E.CLOSED): _S.CLOSED,
    (_S.CLOSED, _E.FAILED): _S.CLOSED,  # an answer that was on its way
    (_S.CLOSED, _E.CLOSED): _S.CLOSED,  # a node may be stopped twice
}

_USABLE = (_S.OPENING, _S.ONLINE, _S.VERIFYING)


class DirectoryOffline(Exception):
    """The directory failed. Nothing more is written to it; what was waiting has an unknown outcome on disk."""

    def __init__(self, path: str, cause: BaseException) -> None:
        super().__init__(
            f"log directory {path} is offline: {cause}. Its replicas are served by other brokers; "
            "repair it, then bring it back with `quorumlog log-dirs online`, or restart the node"
        )
        self.path, self.cause = path, cause


class Generation:
    """One opening of a log directory, as its writers and queues share it.

    is_usable, is_over: for the loop; only DirectoryLife changes them. A usable generation takes work. One that is over
    has been replaced by a later one.
    """

    def __init__(self, path: str, number: int = 1) -> None:
        self.path, self.number = path, number
        self.is_usable = True
        self.is_over = False
        self._cause: dict[str, BaseException] = {}  # of the first failure; one at most, by the path

    @property
    def failure(self) -> DirectoryOffline | None:
        """The first failure. For any thread. A new object each time: whoever raises it adds a traceback to it, whose
        frames hold logs and their descriptors, and it lives as long as the directory is offline."""
        cause = self._cause.get(self.path)
        return None if cause is None else DirectoryOffline(self.path, cause)

    @property
    def is_stalled(self) -> bool:
        """It failed because a call did not return: a thread may still be in it. For any thread."""
        failure = self.failure
        return failure is not None and isinstance(failure.cause, DirectoryStalled)

    def fail(self, cause: BaseException) -> DirectoryOffline:
        """Returns the first failure, whose cause is kept. For any thread: `setdefault` is one step."""
        first = self._cause.get(self.path) or self._cause.setdefault(self.path, kept(cause))
        return DirectoryOffline(self.path, first)


class DirectoryLife:
    """The one owner of whether a log directory is usable. Used on the node's loop only."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.state = DirectoryState.OPENING
        self.generation = Generation(path)
        self._story: deque[str] = deque(maxlen=TOLD_TRANSITIONS)
        self._on_failed: list[Callable[[DirectoryOffline], None]] = []

    def on_failed(self, callback: Callable[[DirectoryOffline], None]) -> None:
        """Call back, once for each generation, when the directory fails. In the order of the subscriptions."""
        self._on_failed.append(callback)

    @property
    def is_online(self) -> bool:
        return self.state is DirectoryState.ONLINE

    @property
    def is_offline(self) -> bool:
        """It failed, and is not verified yet: its replicas are served by other brokers."""
        return self.state in (DirectoryState.FAILED, DirectoryState.VERIFYING)

    @property
    def failure(self) -> DirectoryOffline | None:
        """Of the present generation."""
        return self.generation.failure

    def step(self, event: LifeEvent, generation: Generation) -> bool:
        """Take an event of `generation`. True if the state changed; False also where that generation is over.

        VERIFICATION_BEGAN is an event of the failed generation, and replaces it by the next.
        """
        if generation is not self.generation:
            return False
        before, after = self.state, TRANSITIONS.get((self.state, event))
        assert after is not None, self._invalid(event)
        self._story.append(f"{before.value} --{event.value}--> {after.value} in generation {generation.number}")
        self.state = after
        if event is LifeEvent.VERIFICATION_BEGAN:
            generation.is_over = True
            self.generation = Generation(self.path, generation.number + 1)
        self.generation.is_usable = after in _USABLE
        self._check_invariants()
        return after is not before

    def fail(self, cause: BaseException, generation: Generation) -> bool:
        """`step` with FAILED, and tell the subscribers. The cause counts if it is the generation's first."""
        failure = generation.fail(cause)
        changed = self.step(LifeEvent.FAILED, generation)
        if changed:
            for callback in self._on_failed:
                callback(failure)
        return changed

    def _check_invariants(self) -> None:
        assert self.generation.is_usable == (self.state in _USABLE) and not self.generation.is_over
        if self.state is DirectoryState.FAILED:
            assert self.failure is not None, f"{self.path} failed without a cause"

    def _invalid(self, event: LifeEvent) -> str:
        lines = "".join(f"\n  {line}" for line in self._story) or " nothing"
        return (
            f"log directory {self.path}: `{event.value}` in state `{self.state.value}` of generation "
            f"{self.generation.number}; before that:{lines}"
        )
