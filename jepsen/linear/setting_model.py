"""One setting of all brokers: a register. `set VALUE` (the empty value takes it back) -> OK; `read` -> the value."""

from __future__ import annotations

from jepsen.linear.operation import Operation
from jepsen.linear.topic_model import READ, SET


class SettingModel:
    initial = ""

    def after(self, state: str, operation: Operation) -> str | None:
        if operation.kind == SET:
            return operation.argument
        assert operation.kind == READ, operation
        return state if state == operation.answer else None
