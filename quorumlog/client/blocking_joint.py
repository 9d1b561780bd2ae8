"""Written by `proto/generate_blocking.py` from `AsyncJoint`; change that one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quorumlog.client import real_edges as edge
from quorumlog.client.handover.loop import Blocking

if TYPE_CHECKING:
    from quorumlog.client.joint import AsyncJoint
    from quorumlog.messages.joint import (
        AbortJointRequest,
        AbortJointResponse,
        BeginJointRequest,
        BeginJointResponse,
        CommitJointRequest,
        CommitJointResponse,
        ListedJointGroup,
    )


class Joint(Blocking):
    """`AsyncJoint` without `await`."""

    _client: AsyncJoint

    def __init__(self, config: Mapping[str, Any], *, connect: edge.Connect | None = None) -> None:
        """connect: makes its transport; None: `edge.make_transport`."""
        super().__init__(lambda: edge.joint(dict(config), connect=connect))

    def begin(self, request: BeginJointRequest, timeout_ms: int | None = None) -> BeginJointResponse:
        """The child of this token, or `decided`. timeout_ms: of all tries; None: `default_api_timeout_ms`.

        Raises JointRefused, NoJointTransactions, Unavailable.
        """
        return self._thread.run(self._client.begin(request, timeout_ms))

    def commit(self, request: CommitJointRequest, timeout_ms: int | None = None) -> CommitJointResponse:
        """Raises as `begin`. After Unavailable the batch may be decided: the same call tells."""
        return self._thread.run(self._client.commit(request, timeout_ms))

    def abort(self, request: AbortJointRequest, timeout_ms: int | None = None) -> AbortJointResponse:
        """Raises as `begin`."""
        return self._thread.run(self._client.abort(request, timeout_ms))

    def list_groups(self) -> list[ListedJointGroup]:
        """See `joint_groups`."""
        return self._thread.run(self._client.list_groups())

    def metrics(self) -> dict[str, int]:
        """What this client counts, read now; by Kafka's names."""
        return self._client.metrics()
