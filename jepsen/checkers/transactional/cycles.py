"""Strongly connected components of large graphs in arrays: Tarjan's algorithm without recursion."""

from __future__ import annotations

from array import array
from itertools import accumulate


class Edges:
    """Directed edges between the nodes 0..n-1; 8 bytes for each."""

    def __init__(self) -> None:
        self.sources, self.targets = array("i"), array("i")

    def __len__(self) -> int:
        return len(self.sources)

    def add(self, source: int, target: int) -> None:
        self.sources.append(source)
        self.targets.append(target)

    def extend(self, other: Edges) -> None:
        self.sources.extend(other.sources)
        self.targets.extend(other.targets)


def cycles(edges: Edges, nodes: int) -> list[list[int]]:
    """Components of more than one node, and nodes with an edge to themselves: each holds at least one cycle."""
    first, targets = _by_source(edges, nodes)
    order = array("i", bytes(4 * nodes))  # 0: not visited
    low = array("i", bytes(4 * nodes))
    at = array("i", first[:nodes])  # the next edge to follow
    on_stack = bytearray(nodes)
    found: list[list[int]] = []
    visited = 0
    stack: list[int] = []
    for root in range(nodes):
        if order[root] or first[root] == first[root + 1]:
            continue
        path = [root]
        while path:
            node = path[-1]
            if not order[node]:
                visited += 1
                order[node] = low[node] = visited
                stack.append(node)
                on_stack[node] = 1
            edge, end = at[node], first[node + 1]
            while edge < end:
                target = targets[edge]
                edge += 1
                if not order[target]:
                    path.append(target)
                    break
                if on_stack[target] and order[target] < low[node]:
                    low[node] = order[target]
            at[node] = edge
            if path[-1] != node:
                continue
            path.pop()
            if path and low[node] < low[path[-1]]:
                low[path[-1]] = low[node]
            if low[node] == order[node]:
                component = _pop_until(stack, node, on_stack)
                if len(component) > 1 or node in targets[first[node] : end]:
                    found.append(component)
    return found


def _by_source(edges: Edges, nodes: int) -> tuple[array[int], array[int]]:
    """(where each node's edges begin, with one entry behind the last node; their targets)."""
    counts = array("i", bytes(4 * (nodes + 1)))
    for source in edges.sources:
        counts[source + 1] += 1
    first = array("i", accumulate(counts))
    fill = array("i", first)
    targets = array("i", bytes(4 * len(edges)))
    for source, target in zip(edges.sources, edges.targets, strict=True):
        targets[fill[source]] = target
        fill[source] += 1
    return first, targets


def _pop_until(stack: list[int], node: int, on_stack: bytearray) -> list[int]:
    component = []
    while True:
        top = stack.pop()
        on_stack[top] = 0
        component.append(top)
        if top == node:
            return component
