"""What Prometheus reads: YAML of mappings, lists and strings in double quotes, which are those of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

Node = str | Mapping[str, "Node"] | Sequence["Node"]


def yaml_of(node: Mapping[str, Node], *comments: str) -> str:
    """Keys are words. comments: lines before the rest. An empty mapping or list is written as one."""
    head = "".join(f"# {' '.join(line.split())}\n" for line in comments)
    return head + "".join(f"{line}\n" for line in _lines(node, ""))


def _lines(node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if isinstance(value, str) or not value:
                yield f"{indent}{key}: {_flat(value)}"
            else:
                yield f"{indent}{key}:"
                yield from _lines(value, f"{indent}  ")
    else:
        for one in node:
            if isinstance(one, str) or not one:
                yield f"{indent}- {_flat(one)}"
            else:
                first, *rest = _lines(one, f"{indent}  ")
                yield f"{indent}- {first.lstrip()}"
                yield from rest


def _flat(value: Node) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=True)
    return "{}" if isinstance(value, Mapping) else "[]"
