"""Members of consumer groups, of each client: they join, are killed, paused and resumed, and their offsets survive.

All clients of one run go through it side by side, each with a topic and a group of its own, so that the time-outs of
their sessions pass at the same time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path

from applications.application import Application, Stage
from applications.member_programs import CLASSIC, CONSUMER, JAVA, KCAT, Place, Program
from applications.running import Failed, Process

PARTITIONS = 6
BATCH = 10
POLL_S = 0.3
WAIT_S = 60.0  # beyond the time-out of a session
PARCEL = re.compile(r"parcel (\d+)")


class Member:
    """A process. read: the numbers of the parcels, in order, with those that it read twice."""

    def __init__(self, command: Sequence[str], folder: Path, name: str) -> None:
        self.process = Process(command, log=folder / f"{name}.log", cwd=folder)

    @property
    def read(self) -> list[int]:
        return [int(number) for number in PARCEL.findall(self.process.log.read_text(errors="replace"))]


class Group:
    """The members of one client. sent: how many parcels have gone to its topic."""

    def __init__(self, stage: Stage, program: Program) -> None:
        self.program, self._stage, self._names = program, stage, count()
        self._folder = stage.folder / program.name
        self._folder.mkdir()
        self.name = self._topic = program.name
        place = Place(stage.cluster.bootstrap_servers, self._topic, self.name, stage.cache, self._folder)
        self._command = program.command(place)
        stage.cluster.create(self._topic, partitions=PARTITIONS)
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self.sent = 0

    def start(self) -> Member:
        self.members.append(Member(self._command, self._folder, f"member-{next(self._names)}"))
        return self.members[-1]

    def send(self) -> None:
        self._stage.cluster.send(self._topic, [f"parcel {number}" for number in range(self.sent, self.sent + BATCH)])
        self.sent += BATCH

    def kill(self, member: Member) -> None:
        member.process.kill()
        self._leave(member)

    def stop(self) -> None:
        """All members, in an orderly way."""
        for member in list(self.members):
            member.process.stop()
            self._leave(member)

    def _leave(self, member: Member) -> None:
        self.members.remove(member)
        self.gone.append(member)

    def end(self) -> None:
        for member in self.members:
            member.process.kill()

    def read(self) -> set[int]:
        return {number for member in (*self.members, *self.gone) for number in member.read}

    def missing(self) -> int:
        """How many parcels nobody has read."""
        return self.sent - len(self.read() & set(range(self.sent)))

    def behind(self) -> int:
        """How many parcels are not committed as read."""
        return self.sent - self._stage.cluster.progress(self.name)[0]


def run(stage: Stage, *, programs: Sequence[Program]) -> None:
    """Every parcel is read by a member, whatever happens to the others; and none again after an orderly end."""
    groups: list[Group] = []
    try:
        groups += [Group(stage, program) for program in programs]
        _run(groups)
    finally:
        for group in groups:
            group.end()


def _run(groups: list[Group]) -> None:
    for group in groups:
        for _ in range(3):
            group.start()
    until(groups, _shared(groups), "each of three members has a share")
    stay = {group.name: group.members[2] for group in groups}
    for group in groups:
        group.kill(group.members[0])
        group.members[0].process.pause()
    begins = {group.name: group.sent for group in groups}
    for group in groups:
        group.send()

    def has_all(group: Group) -> bool:
        return set(range(begins[group.name], group.sent)) <= set(stay[group.name].read)

    until(groups, has_all, "the third member has the shares of the one that was killed and of the one that is paused")
    for group in groups:
        group.members[0].process.resume()
        group.start()
    until(groups, _shared(groups), "the one that was resumed and a new one have shares again")
    _stop(groups)
    for group in groups:
        last = group.start()
        group.send()
        wanted = list(range(group.sent - BATCH, group.sent))
        until([group], partial(_has_read, last, wanted), "the next member has what came later")
        if sorted(last.read) != wanted:
            raise Failed(f"{group.name}: read {sorted(last.read)}, though all before {wanted[0]} was committed")
    _stop(groups)


def _has_read(member: Member, wanted: list[int], _group: Group) -> bool:
    return set(wanted) <= set(member.read)


def _shared(groups: list[Group]) -> Callable[[Group], bool]:
    """A condition: from now on every member has read something, and nothing is left. It sends for as long as needed."""
    before = {group.name: {id(member): len(member.read) for member in group.members} for group in groups}

    def holds(group: Group) -> bool:
        if all(len(member.read) > before[group.name][id(member)] for member in group.members):
            return group.missing() == 0
        group.send()
        return False

    return holds


def _stop(groups: list[Group]) -> None:
    for group in groups:
        group.stop()
    until(groups, lambda group: group.behind() == 0, "all is committed when the last member has left")


def until(groups: list[Group], holds: Callable[[Group], bool], what: str) -> None:
    """For each group. Raises Failed that names those for which it does not come true, or whose members have ended."""
    deadline = time.monotonic() + WAIT_S + max(group.program.session_ms for group in groups) / 1_000
    left = list(groups)
    while left := [group for group in left if not holds(group)]:
        for group in left:
            for member in group.members:
                member.process.check(what)
        if time.monotonic() > deadline:
            raise Failed(f"not in time: {what}: {', '.join(map(_told, left))}")
        time.sleep(POLL_S)


def _told(group: Group) -> str:
    shares = [len(member.read) for member in group.members]
    return f"{group.name} ({group.missing()} of {group.sent} unread; read by its members: {shares})"


def prepare_java(cache: Path) -> None:
    """Raises Unavailable."""
    for program in JAVA:
        program.command(Place("", "", "", cache, cache))


def prepare_kcat(cache: Path) -> None:
    """Raises Unavailable."""
    for program in KCAT:
        program.command(Place("", "", "", cache, cache))


ABOUT = "members join, are killed, paused and resumed, and offsets survive"
MEMBERS = Application(
    "members", f"kafka-python, aiokafka, confluent-kafka and our own: {ABOUT}", lambda _: None,
    partial(run, programs=CLASSIC),
)  # fmt: skip
MEMBERS_CONSUMER = Application(
    "members-848", f"confluent-kafka and our own, group.protocol=consumer: {ABOUT}", lambda _: None,
    partial(run, programs=CONSUMER),
)  # fmt: skip
MEMBERS_JAVA = Application(
    "members-java", f"kafka-verifiable-consumer in both protocols: {ABOUT}", prepare_java, partial(run, programs=JAVA)
)
MEMBERS_KCAT = Application("members-kcat", f"kcat -G: {ABOUT}", prepare_kcat, partial(run, programs=KCAT))
ALL = (MEMBERS, MEMBERS_CONSUMER, MEMBERS_JAVA, MEMBERS_KCAT)
