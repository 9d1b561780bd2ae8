"""Who asks, and what the access rules let them do: the questions that the rows of the table ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.security.authorizer import CLUSTER_NAME, Authorizer, ResourceType
from quorumlog.security.principal import Principal
from quorumlog.security.required.need import TOLD_BITS, Need


class Rules(Authorizer, Protocol):
    """The access rules in force."""

    @property
    def generation(self) -> int:
        """Another one: what was decided before may be decided otherwise now."""

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        """Everything that it may do with the resource: one bit for each operation."""


class Topics(Protocol):
    """The topics of the newest metadata. creates: one is made when somebody asks for it (auto.create.topics.enable)."""

    creates: bool

    def name_of(self, topic_id: bytes) -> str | None: ...

    def exists(self, name: str) -> bool: ...

    def names(self) -> Sequence[str]:
        """In their order."""


class Denial(NamedTuple):
    """For the audit log."""

    principal: Principal
    host: str
    listener: str
    api: str
    need: Need
    name: str


class Change(NamedTuple):
    """For the audit log: what a client was let do to the cluster. names: of what, as far as the request has some.
    errors: codes in the answer; none: all of it was done. needs: the rights, of which one or more were asked for.
    metadata_end: of what was written to the metadata, exclusive; -1: nothing, or it is not known."""

    principal: Principal
    host: str
    listener: str
    api: str
    names: tuple[str, ...]
    errors: tuple[int, ...]
    needs: tuple[Need, ...]
    request_id: str
    metadata_end: int


class Denials(Protocol):
    """An audit log. allowed: how often a right was there."""

    allowed: int

    def denied(self, denial: Denial, request_id: str) -> None: ...

    def changed(self, change: Change) -> None: ...


class Asker:
    """The client behind one request. Whatever is denied is told to `denials`, but what a listing leaves out."""

    __slots__ = ("denials", "host", "listener", "principal", "request", "request_id", "rules", "topics")

    def __init__(
        self,
        principal: Principal,
        host: str,
        rules: Rules,
        topics: Topics,
        denials: Denials,
        listener: str,
        request: type,
        request_id: str = "",
    ) -> None:
        """request_id: CONNECTION:CORRELATION; "" for what another node has passed on."""
        self.principal, self.host, self.rules, self.topics = principal, host, rules, topics
        self.denials, self.listener, self.request, self.request_id = denials, listener, request, request_id

    @property
    def api(self) -> str:
        return self.request.__name__.removesuffix("Request")

    # --- questions

    def may(self, need: Need, name: str = CLUSTER_NAME) -> bool:
        """A question whose answer denies nothing by itself."""
        return self.rules.authorize(self.principal, self.host, need.operation, need.resource_type, name)

    def holds(self, need: Need) -> bool:
        """True: the wide right of the cluster stands for a narrower one, which is asked for otherwise."""
        return self.rules.grants(self.principal, self.host, need.operation, need.resource_type, CLUSTER_NAME)

    def may_any(self, need: Need) -> bool:
        return self.rules.authorize_any(self.principal, self.host, need.operation, need.resource_type)

    def allows(self, need: Need, name: str = CLUSTER_NAME) -> bool:
        if self.may(need, name):
            self.denials.allowed += 1
            return True
        return self.deny(need, name)

    def demand(self, need: Need, name: str = CLUSTER_NAME) -> None:
        """Raises ApiError: the whole request is denied."""
        if not self.allows(need, name):
            raise refusal(need)

    def deny(self, need: Need, name: str = CLUSTER_NAME) -> bool:
        """False."""
        self.denials.denied(Denial(self.principal, self.host, self.listener, self.api, need, name), self.request_id)
        return False

    def topic_fault(self, need: Need, topic: Any) -> ErrorCode:
        """Why the client may not do it with a topic that has a `name`, a `topic_id`, or both; NONE: it may.

        Both names must be allowed where an id stands beside another name. An id that is not known is answered here: it
        might be known by the time that the handler looks for it.
        """
        topic_id = getattr(topic, "topic_id", b"")
        if topic_id:
            found = self.topics.name_of(topic_id)
            if found is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            if not self.allows(need, found):
                return need.denied
            if not topic.name or topic.name == found:
                return ErrorCode.NONE
        return ErrorCode.NONE if self.allows(need, topic.name) else need.denied

    def may_all(self, need: Need, topics: Iterable[Any]) -> bool:
        """True: `topic_fault` finds none in topics that have a name and an id. The usual case, in little time."""
        resource_type, operation = need
        authorize, name_of, principal, host = self.rules.authorize, self.topics.name_of, self.principal, self.host
        for topic in topics:
            name, topic_id = topic.name, topic.topic_id
            if topic_id:
                found = name_of(topic_id)
                if found is None or (name and name != found):
                    return False
                name = found
            if not authorize(principal, host, operation, resource_type, name):
                return False
        return True

    # --- what is told of rights (KIP-430)

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """The bits that an answer tells of a resource."""
        found = self.rules.operations(self.principal, self.host, resource_type, name)
        return found & TOLD_BITS[resource_type]

    # --- filters

    def seen(self, need: Need, names: Iterable[str]) -> list[bool]:
        """For a listing, which leaves out what may not be seen."""
        return [self.may(need, name) for name in names]


def refusal(need: Need) -> ApiError:
    """The text names no resource: a client knows what it asked for, and others might read the answer."""
    return ApiError(need.denied, f"not authorized: this needs {need}")
