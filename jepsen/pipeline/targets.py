"""What is struck, and in which order. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from enum import Enum


class Target(Enum):
    DRIVER = "driver"
    EXECUTOR = "executor"
    LEADER = "leader"
    COORDINATOR = "coordinator"
    CONTROLLER = "controller"
    STOP = "stop"
    RAISE = "raise"


OF_NODES = (Target.LEADER, Target.COORDINATOR, Target.CONTROLLER)


def targets(rng: random.Random, known: Sequence[Target]) -> Iterator[Target]:
    """Without an end. Each deck has all of them once."""
    while True:
        deck = list(known)
        rng.shuffle(deck)
        yield from deck
