"""One topic name: absent, or a topic with an id and one setting. Operations and answers are words of this model.

| kind | argument | answers |
|---|---|---|
| create | | the new id, EXISTS |
| delete | | OK, ABSENT |
| delete-id | an id | OK, ABSENT: no topic has it |
| set | a value, or "" to take it back | OK, ABSENT |
| find | | the id, ABSENT |
| read | | the value ("": not set), ABSENT |

An answer with an error is an observation, too. An id belongs to one creation for ever. A creation whose outcome is not
known has an id that nobody was told: its topic is UNNAMED until someone reads the id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jepsen.linear.operation import Operation

CREATE, DELETE, DELETE_ID, SET, FIND, READ = "create", "delete", "delete-id", "set", "find", "read"
EXISTS, ABSENT = "EXISTS", "ABSENT"
_NONE, _UNNAMED = "", "?"  # instead of an id


class TopicState(NamedTuple):
    """id: of the topic; "" if there is none. named: ids of creations that were not answered, once they were read."""

    id: str = _NONE
    value: str = ""
    named: frozenset[str] = frozenset()


class TopicModel:
    """answered: the ids of all creations that were answered, in the whole history of the name."""

    initial = TopicState()

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._answered = frozenset(
            one.answer for one in operations if one.kind == CREATE and one.answer not in (None, EXISTS)
        )

    def after(self, state: TopicState, operation: Operation) -> TopicState | None:
        answer = operation.answer
        if operation.kind == CREATE:
            return self._created(state, operation)
        if answer == ABSENT:
            is_absent = state.id != operation.argument if operation.kind == DELETE_ID else not state.id
            return state if is_absent else None
        if not state.id:
            return None  # every other answer needs a topic; an open operation would find none
        if operation.kind == DELETE:
            return state._replace(id=_NONE, value="")
        if operation.kind == DELETE_ID:
            known = self._known_as(state, operation.argument)
            return None if known is None else known._replace(id=_NONE, value="")
        if operation.kind == SET:
            return state._replace(value=operation.argument)
        if operation.kind == FIND:
            return self._known_as(state, answer or "")
        assert operation.kind == READ, operation
        return state if state.value == answer else None

    def _created(self, state: TopicState, operation: Operation) -> TopicState | None:
        if operation.answer == EXISTS:
            return state if state.id else None
        if state.id:
            return None
        return state._replace(id=operation.answer or _UNNAMED, value="")

    def _known_as(self, state: TopicState, topic_id: str) -> TopicState | None:
        """The state if its topic has this id; None if it cannot have it."""
        if state.id == topic_id:
            return state
        if state.id != _UNNAMED or topic_id in self._answered or topic_id in state.named:
            return None
        return state._replace(id=topic_id, named=state.named | {topic_id})


class SettingModel:
    initial = ""

    def after(self, state: str, operation: Operation) -> str | None:
        if operation.kind == SET:
            return operation.argument
        assert operation.kind == READ, operation
        return state if state == operation.answer else None
