"""What a scenario does beyond the faults that a seed draws (plan.py): the kinds of its strikes, by name. Pure."""

from __future__ import annotations

from enum import Enum


class Step(Enum):
    """One kind of strike of a scenario. The value is what the report calls it."""

    EIO = "directory: EIO"
    ENOSPC = "directory: ENOSPC"
    READ_ONLY = "directory: read-only"
    UNMOUNTED = "directory: unmounted"
    CHMOD = "directory: chmod 000"
    REMOVED = "directory: rm -rf"
    CUT = "network: cut off"
    DEAF = "network: hears nobody"
    MUTE = "network: nobody hears it"
    DELAY = "network: delayed"
    DROP = "network: connections dropped"
    UPGRADE = "upgraded"
    LEVELS = "levels raised, proof required"
    MOVE_TARGET = "move: target killed"
    MOVE_SOURCE = "move: source killed"
    MOVE_CONTROLLER = "move: controller killed"


DIRECTORY_STEPS = frozenset(
    {Step.EIO, Step.ENOSPC, Step.READ_ONLY, Step.UNMOUNTED, Step.CHMOD, Step.REMOVED}
)  # fmt: skip
NETWORK_STEPS = frozenset({Step.CUT, Step.DEAF, Step.MUTE, Step.DELAY, Step.DROP})
MOVE_STEPS = frozenset({Step.MOVE_TARGET, Step.MOVE_SOURCE, Step.MOVE_CONTROLLER})
