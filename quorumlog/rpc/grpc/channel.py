"""The channel of one connection: opened when it is first needed, and again where other certificates are in force.

gRPC never reads certificates again (grpc/grpc#15735). So a channel is replaced as soon as there is a newer generation.
Calls and streams of the old one go on for RETIRED_S, longer than any of them needs but an endless one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc

from quorumlog.nursery import Nursery
from quorumlog.rpc.caller import AUTHORIZATION, Metadata
from quorumlog.rpc.caller_security import CredentialsUnavailable
from quorumlog.rpc.grpc.channel_security import ChannelSecurity
from quorumlog.rpc.grpc.handshake import NoTls, shake_hands
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.transport import Address, NotAuthenticated, NotDelivered
from quorumlog.security.tls.errors import BadTls

if TYPE_CHECKING:
    from quorumlog.security.tls.material import Material

RETIRED_S = 600.0
READY = grpc.ChannelConnectivity.READY
_HOPELESS = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


def target_of(address: Address) -> str:
    return f"dns:///{address}"


async def connected(channel: grpc.aio.Channel, timeout_ms: int) -> bool:
    """True once the channel is connected; False after a failed attempt or at the timeout.

    After a failed attempt gRPC waits before the next one. During that wait this returns False at once; callers have
    their own back-off.
    """
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await _next_outcome(channel)
    except TimeoutError:
        return False


async def _next_outcome(channel: grpc.aio.Channel) -> bool:
    while True:
        state = channel.get_state(try_to_connect=True)
        if state is READY:
            return True
        if state in _HOPELESS:
            return False
        await channel.wait_for_state_change(state)


class Channel:
    """security: None: in clear. nursery: of the connection, for channels that end."""

    def __init__(
        self, address: Address, options: GrpcOptions, security: ChannelSecurity | None, nursery: Nursery
    ) -> None:
        self._address, self._options, self._security, self._nursery = address, options, security, nursery
        self._channel: grpc.aio.Channel | None = None
        self._material: Material | None = None  # of the channel
        self._is_plain = security is None  # or the peer speaks no TLS, and may (`plain_too`)
        self._trying = asyncio.Lock()
        self._denied: NotAuthenticated | None = None
        self._denied_until_s = 0.0  # in the loop's time
        self.generation = 0  # of the credentials that are shown: one more after each refusal that may be mended
        self._may_renew = True  # this generation was accepted, or it is the first

    @property
    def is_secure(self) -> bool:
        return self._security is not None

    def opened(self) -> grpc.aio.Channel:
        """The channel of the newest generation; it may be connected or not."""
        material = self._security.material() if self._security is not None else None
        if self._channel is not None and material is self._material:
            return self._channel
        self._retire()
        target, arguments = target_of(self._address), self._options.channel_arguments()
        if self._security is None or material is None or self._is_plain:
            self._channel = grpc.aio.insecure_channel(target, options=arguments)
        else:
            self._channel = grpc.aio.secure_channel(target, self._security.credentials(material), options=arguments)
        self._material = material
        return self._channel

    def _retire(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            self._nursery.start(channel.close(RETIRED_S), f"older channel to {self._address}")

    async def connect(self, timeout_ms: int) -> bool:
        """True once it is connected. Raises NotAuthenticated, or NotDelivered with the reason."""
        if self._security is None:
            return await connected(self.opened(), timeout_ms)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                async with self._trying:  # one handshake for all calls that wait
                    return await self._shake_and_connect(self._security)
        except TimeoutError:
            return False

    async def _shake_and_connect(self, security: ChannelSecurity) -> bool:
        if self.opened().get_state() is READY:
            return True
        self.check()
        is_plain = False
        try:
            security.check(await shake_hands(self._address, security.context()))
        except (NotAuthenticated, BadTls) as error:
            is_plain = isinstance(error, NoTls) and security.plain_too
            if not is_plain:
                self._deny(NotAuthenticated(str(error)), security)
                raise NotAuthenticated(str(error)) from None
        if is_plain is not self._is_plain:
            self._is_plain = is_plain
            self._retire()
        return await _next_outcome(self.opened())

    def _deny(self, refusal: NotAuthenticated, security: ChannelSecurity) -> None:
        """The peer is not asked again before `denied_ms` are over."""
        self._denied = refusal
        self._denied_until_s = asyncio.get_running_loop().time() + security.denied_ms / 1000

    def check(self) -> None:
        """Raises the refusal that is in force."""
        if self._denied is not None and asyncio.get_running_loop().time() < self._denied_until_s:
            raise NotAuthenticated(str(self._denied))

    async def authorization(self) -> Metadata:
        """What shows the caller's credentials. Raises NotAuthenticated, or NotDelivered."""
        if self._security is None or self._security.authorization is None:
            return ()
        try:
            return ((AUTHORIZATION, await self._security.authorization()),)
        except CredentialsUnavailable as error:
            raise NotDelivered(f"there is nothing to log in with at {self._address}: {error}") from None

    def accepted(self) -> None:
        """The peer takes the credentials that came with a call."""
        self._may_renew = True

    def refused(self, details: str, generation: int) -> NotDelivered:
        """The peer does not take the credentials that came with a call: NotAuthenticated, unless there may be others,
        such as the next token. The caller's next attempt shows those. generation: when they were shown."""
        assert self._security is not None, "nobody shows credentials in clear"
        mended = NotDelivered(f"{self._address} does not take the credentials that were shown ({details})")
        if generation < self.generation:
            return mended
        may_renew, self._may_renew = self._may_renew, False
        if self._security.renew() and may_renew:
            self.generation += 1
            return mended
        refusal = NotAuthenticated(
            f"{self._address} refuses the credentials of this client ({details}): {self._security.cure}"
        )
        self._deny(refusal, self._security)
        return refusal

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
