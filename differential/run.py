"""A sequence, played on both sides step by step, and what its answers tell."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from differential.builders import SESSION
from differential.compare import Difference, differences
from differential.conversation import ANSWER_S, CLOSED, SILENT, Answer, Conversation, codes_of
from differential.sequences import SETTING_STEPS, closing, prefix_of, sequence
from differential.sides import Sides
from differential.step import Book, Ref, Step, Values
from differential.wanted import Wanted, explaining, parts_in_silence

# What passes by itself: a coordinator that loads, a leader that begins, markers that are on their way.
PASSING = (5, 6, 14, 15, 16, 41, 51)
AGAIN_S = 0.1
FIRST_WITH_SESSIONS = 7  # of Fetch
AGAIN_MOST = 20
READ_AGAIN_MOST = 2
SETTLES_MOST = 50
WAITS_S = 0.3  # for the answer of a member that joins, before the others go on
READING = (
    "fetch", "list_offsets", "metadata", "offset_fetch", "find_coordinator", "describe_groups", "list_groups",
    "api_versions", "offset_for_leader_epoch", "describe_acls", "describe_configs", "describe_log_dirs",
    "list_partition_reassignments", "describe_quorum", "describe_cluster", "describe_producers",
    "describe_transactions",
    "list_transactions", "consumer_group_describe", "describe_topic_partitions",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """number: of the step in its sequence. found: what no row of `wanted.WANTED` explains."""

    seed: int
    number: int
    step: Step
    found: tuple[Difference, ...]
    theirs: Answer
    ours: Answer

    @property
    def kind(self) -> tuple[str, tuple[str, ...]]:
        """The same for what is probably the same difference."""
        return self.step.api, tuple(sorted({_kind_of(one) for one in self.found}))


@dataclass(slots=True)
class Tally:
    """calls: by API and version. explained: differences by the row that wants them.

    apart: how often the two sides' states went apart, and the sequence went on with other names. again: questions that
    were asked again.
    """

    calls: Counter[tuple[str, int]] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    sequences: int = 0
    apart: int = 0
    again: int = 0

    @property
    def count(self) -> int:
        return self.calls.total()


class Play:
    """One sequence on both sides. at: the number of the step that is played."""

    def __init__(self, sides: Sides, seed: int, tally: Tally, api: str | None = None) -> None:
        self._sides, self._seed, self._tally = sides, seed, tally
        self._api = api
        self._both: tuple[Conversation, Conversation] = (sides.theirs, sides.ours)
        self.findings: list[Finding] = []
        self.at = 0
        self._begin_turn()

    def _begin_turn(self) -> None:
        """All names are new."""
        turn = self._sides.turns[self._seed]
        self._sides.turns[self._seed] = turn + 1
        self._prefix = prefix_of(self._seed, turn)
        self.steps: Sequence[Step] = sequence(self._seed, self._sides.versions, self._api, turn)
        self._books = (Book(), Book())
        self._pending: dict[str, tuple[int, Step]] = {}
        self._is_apart = False

    def run(self, keep: Collection[int] | None = None) -> list[Finding]:
        """What it found. keep: numbers of the steps to play; None: all. Raises Ended, with what was found in
        `findings`: the last one is what came before."""
        try:
            for number in range(len(self.steps)):
                if keep is not None and number not in keep:
                    continue
                if self._is_apart:
                    self._start_over(keep)
                self.at = number
                self._step(number, self.steps[number])
            for number, step in list(self._pending.values()):
                self._judge(number, step, *self._answers(step, 0.0))
            self._clean()
        finally:
            self._hang_up()
        self._tally.sequences += 1
        return self.findings

    def _start_over(self, keep: Collection[int] | None) -> None:
        """The two sides have gone apart, and all that follows would differ: go on with other topics and groups."""
        self._clean()
        self._begin_turn()
        self._tally.apart += 1
        for number in range(SETTING_STEPS):
            if keep is None or number in keep:
                self._step(number, self.steps[number])

    def _step(self, number: int, step: Step) -> None:
        if step.lane in self._pending:
            before, waiting = self._pending[step.lane]
            theirs, ours = self._answers(waiting, 0.0)
            if SILENT in (theirs, ours) and theirs == ours:
                return  # the member still waits for others
            self._pending.pop(step.lane)
            self._judge(before, waiting, theirs, ours)
        if not self._begin(step, (0, 1)):
            return
        self._tally.calls[step.api, step.version] += 1
        waits = step.lane != "main"
        theirs, ours = self._answers(step, WAITS_S if waits else ANSWER_S)
        if waits and theirs == ours == SILENT:
            self._pending[step.lane] = number, step
            return
        self._judge(number, step, theirs, ours)

    def _begin(self, step: Step, sides: Sequence[int]) -> bool:
        for side in sides:
            values: Values = self._books[side].resolve(step.values)
            try:
                self._both[side].begin(step, values)
            except struct.error:  # an epoch of -1, lowered or raised beyond its width
                return False
        return True

    def _answers(self, step: Step, wait_s: float) -> tuple[Answer, Answer]:
        """If one side has answered, the other one gets the usual time."""
        theirs = self._both[0].end(step, wait_s)
        ours = self._both[1].end(step, wait_s if theirs == SILENT else ANSWER_S)
        if theirs == SILENT and ours != SILENT:
            theirs = self._both[0].end(step, ANSWER_S)
        return theirs, ours

    def _judge(self, number: int, step: Step, theirs: Answer, ours: Answer) -> None:
        answers = [theirs, ours]
        found = self._unexplained(step, answers)
        for turn in range(AGAIN_MOST):
            again = self._to_ask_again(step, answers, turn) if found else []
            if not again:
                break
            time.sleep(AGAIN_S)
            self._tally.again += 1
            self._begin(step, again)
            for side in again:
                answers[side] = self._both[side].end(step)
            found = self._unexplained(step, answers)
        self._learn(step, answers)
        self._drop_silent(step, answers)
        self._is_apart |= parts_in_silence(step) or (bool(found) and step.api not in READING)
        if found:
            self.findings.append(
                Finding(
                    seed=self._seed, number=number, step=step, found=tuple(found), theirs=answers[0], ours=answers[1]
                )
            )

    def _to_ask_again(self, step: Step, answers: Sequence[Answer], turn: int) -> list[int]:
        """The sides whose answer may be another one a moment later."""
        if any(isinstance(answer, str) for answer in answers):
            return []
        codes = [codes_of(answer) & {*PASSING} for answer in answers]
        if codes[0] == codes[1]:
            codes = [set(), set()]
        passing = [side for side in (0, 1) if codes[side]]
        return [0, 1] if not passing and step.api in READING and turn < READ_AGAIN_MOST else passing

    def _unexplained(self, step: Step, answers: Sequence[Answer]) -> list[Difference]:
        left = []
        every = differences(step, answers[0], answers[1], self._books, self._prefix)
        for one in every:
            wanted: Wanted | None = explaining(step, one, every)
            if wanted is None:
                left.append(one)
            else:
                self._tally.explained[wanted.name] += 1
                self._is_apart |= wanted.goes_apart
        return left

    def _learn(self, step: Step, answers: Sequence[Answer]) -> None:
        for side, answer in enumerate(answers):
            if not isinstance(answer, str):
                learn(step, answer, self._books[side])
        if step.api == "fetch" and len({_goes_on(answer) for answer in answers}) > 1:
            for book in self._books:  # the sessions have gone apart
                book.forget("session", SESSION)
                book.forget("session epoch", SESSION)
        if step.api in ("create_topics", "delete_topics", "create_partitions"):
            for side, answer in enumerate(answers):
                self._settle(side, step, answer)
            time.sleep(AGAIN_S)

    def _settle(self, side: int, step: Step, changed: Answer) -> None:
        """Learn the ids of the topics, and wait until the broker has what the controller has made and deleted."""
        made, gone = _changed(step, changed)
        for _ in range(SETTLES_MOST):
            answer = self._both[side].ask("metadata", 12, {"topics": None})
            assert not isinstance(answer, str), answer
            names = [topic["name"] for topic in answer["topics"]]
            for topic in answer["topics"]:
                self._books[side].learn("topic", topic["name"], topic["topic_id"])
            is_led = not any(one["error_code"] for topic in answer["topics"] for one in (topic, *topic["partitions"]))
            is_known = all(name in names for name in made) and not any(name in names for name in gone)
            if is_led and is_known and self._has_logs(side, answer["topics"]):
                break
            time.sleep(AGAIN_S)

    def _has_logs(self, side: int, topics: Sequence[Values]) -> bool:
        """Of every partition of the sequence: a broker makes the logs of many one after the other."""
        answer = self._both[side].ask("describe_log_dirs", 4, {"topics": None})
        assert not isinstance(answer, str), answer
        held = {
            (topic["name"], one["partition_index"])
            for directory in answer["results"]
            for topic in directory["topics"]
            for one in topic["partitions"]
        }
        own = [topic for topic in topics if topic["name"].startswith(self._prefix)]
        return held.issuperset((topic["name"], one["partition_index"]) for topic in own for one in topic["partitions"])

    def _drop_silent(self, step: Step, answers: Sequence[Answer]) -> None:
        if SILENT in answers or CLOSED in answers:
            for conversation in self._both:
                conversation.drop(step.lane)

    def _hang_up(self) -> None:
        for conversation in self._both:
            for lane in dict.fromkeys(step.lane for step in self.steps):
                conversation.drop(lane)

    def _clean(self) -> None:
        self._hang_up()
        for conversation in self._both:
            conversation.ask("delete_topics", 5, closing(self._prefix))


def _changed(step: Step, answer: Answer) -> tuple[list[str], list[str]]:
    """The topics that a call has made, and those that it has deleted."""
    if isinstance(answer, str) or step.values.get("validate_only"):
        return [], []
    done = [topic["name"] for topic in answer.get("topics") or answer.get("responses") or () if not topic["error_code"]]
    return (done, []) if step.api == "create_topics" else ([], done if step.api == "delete_topics" else [])


def learn(step: Step, answer: Values, book: Book) -> None:
    """Remember what the answer gives out."""
    label = step.label
    if step.api == "fetch" and step.version >= FIRST_WITH_SESSIONS:
        _learn_session(step, answer, book)
    if step.api in ("init_producer_id", "end_txn") and label:
        if not answer["error_code"] and answer.get("producer_id", -1) >= 0:
            book.learn("producer", label, answer["producer_id"])
            book.learn("epoch", label, answer["producer_epoch"])
    elif step.api == "join_group" and answer["member_id"]:
        book.learn("member", label, answer["member_id"])
        if not answer["error_code"]:
            book.learn("generation", label, answer["generation_id"])
    elif step.api == "consumer_group_heartbeat" and not answer["error_code"]:
        if answer["member_id"]:
            book.learn("member", label, answer["member_id"])
        book.learn("generation", label, answer["member_epoch"])


def _learn_session(step: Step, answer: Values, book: Book) -> None:
    """Of the one session that goes on: its id, and the epoch that its next request has to name."""
    if step.values["session_id"] != Ref("session", SESSION):
        return
    if _goes_on(answer):
        book.learn("session epoch", SESSION, book.resolve(step.values["session_epoch"]) + 1)
        book.learn("session", SESSION, answer["session_id"])
    else:
        book.forget("session", SESSION)
        book.forget("session epoch", SESSION)


def _goes_on(answer: Answer) -> bool:
    """The session of a fetch."""
    return not isinstance(answer, str) and bool(answer.get("session_id")) and not answer["error_code"]


def _kind_of(one: Difference) -> str:
    """The path without the names of elements, and small values."""
    path = "".join(part.partition("]")[2] if "]" in part else part for part in one.path.split("["))
    values = [repr(value) if isinstance(value, int | str | None) else "..." for value in (one.theirs, one.ours)]
    return f"{path}: {values[0][:30]}, ours {values[1][:30]}"
