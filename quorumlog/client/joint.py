"""A client of joint groups (decision 112): begins children, commits or aborts a batch at the group's coordinator.

Each call may be repeated: a token gets the same child again, a decided batch the same answer, and an abort finds less
to abort. So a lost answer, a coordinator that has moved or loads, and a decision that is being carried out are no
errors of the caller's: the call is made again until its time is over.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from quorumlog.client.administration.joint import joint_groups
from quorumlog.client.cluster.linked import Linked
from quorumlog.client.errors import (
    NO_JOINT,
    NOT_OURS,
    AuthenticationFailed,
    NoJointTransactions,
    NoProtocol,
    NotOurs,
    RequestFailed,
    Unavailable,
    refused,
)
from quorumlog.client.transactions.coordinators import TransactionCoordinator
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import (
    AbortJointRequest,
    AbortJointResponse,
    BeginJointRequest,
    BeginJointResponse,
    CommitJointRequest,
    CommitJointResponse,
    ListedJointGroup,
)
from quorumlog.rpc.transport import NotAuthenticated, NotServed, RpcError, Transport

SOON_MS = 5  # the first wait for the decision before; doubled each time, up to the back-off
TRY_TIMEOUT_MS = 3_000  # of the first try of a call; doubled in each further one, up to request_timeout_ms


class AsyncJoint(Linked):
    """Arguments: see `Linked`."""

    def __init__(
        self,
        transport: Transport,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        **options: Any,
    ) -> None:
        super().__init__(transport, config, clock=clock, rng=rng, **options)
        self._coordinator: tuple[str, TransactionCoordinator] | None = None  # of the group that was asked last

    async def begin(self, request: BeginJointRequest, timeout_ms: int | None = None) -> BeginJointResponse:
        """The child of this token, or `decided`. timeout_ms: of all tries; None: `default_api_timeout_ms`.

        Raises JointRefused, NoJointTransactions, Unavailable.
        """
        response: BeginJointResponse = await self._call(request, timeout_ms)
        return response

    async def commit(self, request: CommitJointRequest, timeout_ms: int | None = None) -> CommitJointResponse:
        """Raises as `begin`. After Unavailable the batch may be decided: the same call tells."""
        response: CommitJointResponse = await self._call(request, timeout_ms, max(0, request.commit_wait_ms))
        return response

    async def abort(self, request: AbortJointRequest, timeout_ms: int | None = None) -> AbortJointResponse:
        """Raises as `begin`."""
        response: AbortJointResponse = await self._call(request, timeout_ms)
        return response

    async def list_groups(self) -> list[ListedJointGroup]:
        """See `joint_groups`."""
        return await joint_groups(self._link)

    def _coordinator_of(self, group_id: str) -> TransactionCoordinator:
        if self._coordinator is None or self._coordinator[0] != group_id:
            self._coordinator = (group_id, TransactionCoordinator(self._link, group_id))
        return self._coordinator[1]

    async def _call(self, request: Any, timeout_ms: int | None, waits_ms: int = 0) -> Any:
        """waits_ms: how long the coordinator may hold an answer back."""
        limit_ms = timeout_ms or self.options.default_api_timeout_ms
        deadline_ms = self._link.clock.now_ms() + limit_ms
        coordinator = self._coordinator_of(request.group_id)
        attempt = 0
        while True:
            left_ms = max(1, deadline_ms - self._link.clock.now_ms())
            answer = await self._once(coordinator, request, min(self._patience_ms(attempt) + waits_ms, left_ms))
            if not isinstance(answer, Exception):
                return answer
            attempt += 1
            wait_ms = self._wait_ms(answer, attempt)
            if self._link.clock.now_ms() + wait_ms >= deadline_ms:
                what = type(request).__name__.removesuffix("Request")
                raise Unavailable(
                    f"the coordinator of joint group {request.group_id!r} has not answered {what} within {limit_ms} ms "
                    f"({attempt} tries); last: {answer}"
                ) from answer
            await asyncio.sleep(wait_ms / 1000)

    async def _once(self, coordinator: TransactionCoordinator, request: Any, timeout_ms: int) -> Any:
        """An answer without an error, or the error for which it is asked again."""
        try:
            response = await coordinator.once(request, timeout_ms)
        except (NoProtocol, NotServed) as error:
            raise NotOurs(NOT_OURS) from error
        except NotAuthenticated as error:
            raise AuthenticationFailed(str(error)) from error
        except RequestFailed as error:  # of FindCoordinator
            if not error.code.retriable:
                raise
            return error
        except (RpcError, Unavailable) as error:
            return error
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE:
            return response
        if code is ErrorCode.UNSUPPORTED_VERSION:
            raise NoJointTransactions(f"{NO_JOINT}: {response.error_message}")
        refusal = refused(code, response.error_message)
        if not code.retriable:
            raise refusal
        return refusal

    def _patience_ms(self, attempt: int) -> int:
        return min(TRY_TIMEOUT_MS << min(attempt, 10), self.options.request_timeout_ms)

    def _wait_ms(self, error: Exception, attempt: int) -> int:
        backoff_ms = self._link.backoff_ms(attempt)
        is_soon = isinstance(error, RequestFailed) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS
        return min(backoff_ms, SOON_MS << min(attempt - 1, 10)) if is_soon else backoff_ms
