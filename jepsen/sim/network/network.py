"""The simulated network: hosts, links with faults, sessions, and listeners.

Every delay and fault is drawn from one generator per link. Faults can be set per link and changed at any time: cuts (in
either direction), profiles (loss, duplicates, delay, hold), hosts without power, wrong refusals, and an interceptor
that decides about each message. A cut link is silent: it neither refuses nor resets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from jepsen.sim.network.link import LOCAL, Link, LinkProfile
from jepsen.sim.network.message import CLIENT, SERVER, Message, Phase, Verdict
from jepsen.sim.network.session import Block, Pipe, Session
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler
from quorumlog.rpc.caller import Metadata
from quorumlog.rpc.transport import Address

KEEPALIVE_NS = 7 * NS_PER_S  # gRPC's keepalive time and timeout (rpc/grpc/options): a cut of this length is detected
_FIRST_FREE_PORT = 40_000

Interceptor = Callable[[Message], Verdict]


class Listening(Protocol):
    """A listener at an address."""

    def accept(self, session: Session, metadata: Metadata) -> None: ...


class Network:
    def __init__(self, scheduler: Scheduler, profile: LinkProfile | None = None) -> None:
        self.scheduler = scheduler
        self.intercept: Interceptor | None = None
        self.on_admitted: Callable[[Message], None] = lambda _message: None  # a listener carries out this request
        self.full_buffers = 0  # how often a writer was told to pause
        self.older_software: dict[str, None] = {}  # hosts whose process knows no call that has an older one
        self.wrong_refusals: dict[str, None] = {}  # hosts that a probe takes for dead although they live
        self._profile = profile or LinkProfile()
        self._links: dict[tuple[str, str], Link] = {}
        self._listening: dict[Address, Listening] = {}
        self._sessions: dict[int, Session] = {}
        self._without_power: dict[str, None] = {}
        self._held: list[tuple[Message, Callable[[], None]]] = []
        self._next_session, self._next_port, self._next_source = 1, _FIRST_FREE_PORT, 1

    # ---- faults

    def link(self, source: str, destination: str) -> Link:
        key = (source, destination)
        if key not in self._links:
            profile = LOCAL if source == destination else self._profile
            self._links[key] = Link(profile, self.scheduler.rng(f"net/{source}/{destination}"))
        return self._links[key]

    def set_profile(self, profile: LinkProfile) -> None:
        """Set the profile of every link between two hosts, also of links not used yet."""
        self._profile = profile
        for (source, destination), link in self._links.items():
            if source != destination:
                link.profile = profile

    def cut(self, source: str, destination: str) -> None:
        """Cut the link from source to destination. The opposite direction is another link."""
        assert source != destination
        link = self.link(source, destination)
        if link.cut:
            return
        link.cut, link.cuts = True, link.cuts + 1
        this_cut = link.cuts
        self.scheduler.call_later(KEEPALIVE_NS, lambda: self._keepalive(source, destination, this_cut))

    def cut_both(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def heal(self, source: str, destination: str) -> None:
        link = self.link(source, destination)
        if not link.cut:
            return
        link.cut = False
        for session in self._between(source, destination):
            session.on_healed()

    def heal_all(self) -> None:
        for source, destination in list(self._links):
            self.heal(source, destination)

    def power_off(self, host: str) -> None:
        """The host becomes silent: no resets, no refusals. Kill its processes after this call."""
        self._without_power[host] = None
        for session in self._of_host(host):
            self.scheduler.call_later(KEEPALIVE_NS, session.tear)

    def power_on(self, host: str) -> None:
        if host in self._without_power:
            del self._without_power[host]
            for session in self._of_host(host):
                session.on_healed()

    def release_held(self, which: Callable[[Message], bool] = lambda _: True) -> None:
        """Send these of the messages that the interceptor held, in their original order."""
        held, self._held = self._held, []
        self._held = [entry for entry in held if not which(entry[0])]
        for message, send in held:
            if which(message):
                send()

    @property
    def open_sessions(self) -> int:
        return len(self._sessions)

    # ---- listening and connecting

    def new_random_bytes(self, host: str) -> Callable[[int], bytes]:
        """A new source of bytes for a process of this host."""
        number, self._next_source = self._next_source, self._next_source + 1
        return self.scheduler.rng(f"nonces/{host}/{number}").randbytes

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def listens(self, address: Address) -> bool:
        return address in self._listening

    def listen(self, address: Address, listening: Listening) -> None:
        assert address not in self._listening
        self._listening[address] = listening

    def stop_listening(self, address: Address, listening: Listening) -> None:
        """No effect if another listener has the address."""
        if self._listening.get(address) is listening:
            del self._listening[address]

    def connect(
        self, source: str, address: Address, metadata: Metadata, on_result: Callable[[Session | None], None]
    ) -> None:
        """`on_result(None)`: refused. Not called if the network is silent."""

        def arrive() -> None:
            listening = self._listening.get(address)
            session = None
            if listening is not None:
                session = self._open(source, address.host)
                listening.accept(session, metadata)
            self.send_control(address.host, source, lambda: on_result(session))

        self.send_control(source, address.host, arrive)

    # ---- sending, for sessions

    def send_control(self, source: str, destination: str, arrive: Callable[[], None], pipe: Pipe | None = None) -> None:
        """A message between kernels: lost only on a cut link."""
        if self._silent(source, destination):
            return
        when_ns = self.scheduler.now_ns + self.link(source, destination).delay_ns(0)
        self.scheduler.call_at(_after(pipe, when_ns), arrive)

    def send_unary(self, message: Message, arrive: Callable[[], None]) -> None:
        verdict = self._verdict(message)
        if verdict is Verdict.HOLD:
            self._held.append((message, lambda: self._deliver(message, arrive, 0, None)))
            return
        link = self.link(message.source, message.destination)
        if verdict is Verdict.DROP or link.loses() or self._silent(message.source, message.destination):
            self._record(message, "lost")
            return
        self._deliver(message, arrive, link.hold_ns(), None)
        if message.phase is Phase.REQUEST and (verdict is Verdict.TWICE or link.duplicates()):
            self._deliver(message, arrive, link.hold_ns(), None)

    def send_ordered(self, message: Message, pipe: Pipe, session: Session, side: str) -> None:
        verdict = self._verdict(message)
        if verdict is Verdict.HOLD:
            session.block(side, Block.HELD, lambda: self._pass_ordered(message, pipe, session, side))
            self._held.append((message, lambda: session.unblock(side, Block.HELD)))
        elif verdict is Verdict.DROP:
            self._lose_ordered(message, session)
        else:
            self._pass_ordered(message, pipe, session, side)

    def _pass_ordered(self, message: Message, pipe: Pipe, session: Session, side: str) -> None:
        link = self.link(message.source, message.destination)
        if self._silent(message.source, message.destination):
            session.block(side, Block.SILENCE, lambda: self._pass_ordered(message, pipe, session, side))
        elif link.loses():
            self._lose_ordered(message, session)
        else:
            self._deliver(message, lambda: session.arrive_ordered(side, message), link.hold_ns(), pipe)

    def _lose_ordered(self, message: Message, session: Session) -> None:
        self._record(message, "lost")
        self.scheduler.call_later(self.link(message.source, message.destination).delay_ns(0), session.tear)

    # ---- within

    def _verdict(self, message: Message) -> Verdict:
        return Verdict.PASS if self.intercept is None else self.intercept(message)

    def _deliver(self, message: Message, arrive: Callable[[], None], hold_ns: int, pipe: Pipe | None) -> None:
        delay_ns = self.link(message.source, message.destination).delay_ns(len(message.data)) + hold_ns

        def at_the_other_end() -> None:
            self._record(message, message.name)
            arrive()

        self.scheduler.call_at(_after(pipe, self.scheduler.now_ns + delay_ns), at_the_other_end)

    def _record(self, message: Message, kind: str) -> None:
        self.scheduler.record(f"{message.source}>{message.destination}", kind.replace(" ", "-"), message.data)

    def _silent(self, source: str, destination: str) -> bool:
        if source in self._without_power or destination in self._without_power:
            return True
        return self.link(source, destination).cut

    def _open(self, client_host: str, server_host: str) -> Session:
        self._sessions = {number: session for number, session in self._sessions.items() if not session.over}
        session = Session(self, self._next_session, client_host, server_host)
        self._sessions[session.number] = session
        self._next_session += 1
        return session

    def _between(self, one: str, other: str) -> list[Session]:
        return [session for session in self._sessions.values() if session.crosses(one, other)]

    def _of_host(self, host: str) -> list[Session]:
        return [session for session in self._sessions.values() if host in (session.host(CLIENT), session.host(SERVER))]

    def _keepalive(self, source: str, destination: str, which_cut: int) -> None:
        link = self.link(source, destination)
        if link.cut and link.cuts == which_cut:
            for session in self._between(source, destination):
                session.tear()


def _after(pipe: Pipe | None, when_ns: int) -> int:
    """`when_ns`, or the arrival of this pipe's last message if that is later."""
    if pipe is None:
        return when_ns
    pipe.last_ns = max(pipe.last_ns, when_ns)
    return pipe.last_ns
