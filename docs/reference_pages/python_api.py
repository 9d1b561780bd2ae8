"""The reference of the public names: which, in which order. Signatures and texts come from the code, by autodoc."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

MODULES = {  # whose `__all__` is public, and what the module is for
    "quorumlog": "The clients. A name with `Async` is for asyncio; the others block, and have the same methods.",
    "quorumlog.schemas": "Serializers by a schema registry (extra `schema`); [Schemas](../schemas.md) shows them.",
    "quorumlog.testing": "Real clusters for an application's tests; pytest finds the fixtures by itself.",
    "quorumlog.spark": "The format `quorumlog` of Spark; its options are in [Spark](../spark.md).",
}
ALSO = {  # public by their module, which has no `__all__`
    "quorumlog": (
        "quorumlog.client.batches.delivery.RecordMetadata",
        "quorumlog.client.plugins.serializers.Serializer",
        "quorumlog.client.plugins.serializers.Deserializer",
        "quorumlog.client.plugins.serializers.Prepares",
        "quorumlog.client.plugins.interceptors.ProducerInterceptor",
        "quorumlog.client.plugins.interceptors.ConsumerInterceptor",
        "quorumlog.client.plugins.interceptors.OutgoingRecord",
        "quorumlog.errors.ErrorCode",
    ),
    "quorumlog.testing": ("quorumlog.testing.topic.LocalTopic", "quorumlog.testing.faults.Faults"),
}
WITHOUT_MEMBERS = {"quorumlog.errors.ErrorCode"}  # errors.md has them


def public_names() -> list[str]:
    """Dotted, in the page's order."""
    return [name for module in MODULES for name in _of(module)]


def _of(module: str) -> Iterator[str]:
    yield from (f"{module}.{name}" for name in importlib.import_module(module).__all__)
    yield from ALSO.get(module, ())


def page() -> str:
    """Markdown with autodoc's directives."""
    return "\n".join(part for module, text in MODULES.items() for part in _section(module, text))


def _section(module: str, text: str) -> Iterator[str]:
    yield f"## {module}\n\n{text}\n"
    for name in _of(module):
        yield f"### {name.rpartition('.')[2]}\n"
        yield "```{eval-rst}\n" + "\n".join(_directive(name)) + "\n```\n"


def _directive(name: str) -> Iterator[str]:
    home, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(home), last)
    yield f".. auto{'class' if isinstance(found, type) else 'function'}:: {name}"
    if isinstance(found, type) and name not in WITHOUT_MEMBERS:
        yield "   :members:"
        yield f"   :inherited-members: {'Exception' if issubclass(found, BaseException) else 'object'}"


def on_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Sphinx's event: leaves out what inherits from a builtin (`with_traceback`), and names with an underscore."""
    if name.startswith("_") or name in ("with_traceback", "add_note"):
        return True
    return None
