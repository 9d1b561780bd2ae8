"""The scenarios by name: their strikes, their clusters, and which strikes this machine does not allow."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from jepsen.live.cluster.shape import USUAL, Shape
from jepsen.live.cluster.versions import NO_HISTORY, has_history, old_tree
from jepsen.live.disks.ways import SPACE_BLOWS, Ways
from jepsen.live.plan import DIRECTORY_STEPS, Blow, Kind, Role, Step, Strike, Target
from jepsen.live.scenarios.volumes import kind_of_volume

CALM_MS = 3_000  # before each strike; latencies before and after it are compared
WITHOUT_ROOTS_RIGHTS = (
    "setpriv", "--inh-caps=-dac_override,-dac_read_search", "--bounding-set=-dac_override,-dac_read_search",
)  # fmt: skip
TRIAL_TIMEOUT_S = 10.0

Wanted = tuple[Kind | Step, Target, int]  # the kind, whom it strikes, ms that it holds
_CONTROLLER, _LEADER = Target(Role.CONTROLLER, 1), Target(Role.LEADER, 0)


def _node(number: int) -> Target:
    return Target(Role.NODE, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """needs_mounts: file systems are mounted. fails_no_write: no write of any producer may be answered by an error."""

    summary: str
    wanted: tuple[Wanted, ...]
    nodes: int = 3
    partitions: int = 6
    size: int = 0  # bytes that every value is longer by
    needs_mounts: bool = False
    fails_no_write: bool = False
    proxied: bool = False
    from_old: bool = False


SCENARIOS: Mapping[str, Scenario] = {
    "directories": Scenario(
        summary="a log directory fails by EIO, ENOSPC, read-only, lazy unmount, chmod, rm -rf",
        wanted=(
            (Step.EIO, _node(1), 4_000),
            (Step.ENOSPC, _node(2), 4_000),
            (Step.READ_ONLY, _node(3), 4_000),
            (Step.UNMOUNTED, _node(1), 4_000),
            (Step.CHMOD, _node(2), 4_000),
            (Step.REMOVED, _node(3), 4_000),
        ),
        partitions=12,
        needs_mounts=True,
    ),
    "disk-full": Scenario(
        summary="a small file system of a leader is full, or nearly",
        wanted=tuple(
            (kind, target, 6_000) for kind in (Kind.FULL_DISK, Kind.LOW_DISK) for target in (_LEADER, _node(2))
        ),
        needs_mounts=True,
    ),
    "network": Scenario(
        summary="a proxy cuts, delays and drops what passes between nodes, in both directions or in one",
        wanted=(
            (Step.CUT, _CONTROLLER, 8_000),
            (Step.CUT, _LEADER, 8_000),
            (Step.DEAF, _LEADER, 8_000),
            (Step.MUTE, _LEADER, 8_000),
            (Step.DEAF, _CONTROLLER, 8_000),
            (Step.MUTE, _CONTROLLER, 8_000),
            (Step.DELAY, _LEADER, 6_000),
            (Step.DROP, _LEADER, 6_000),
        ),
        proxied=True,
    ),
    "rolling-restart": Scenario(
        summary="every node is restarted in turn, twice; no write fails",
        wanted=tuple((Kind.RESTART, _node(number), 0) for _ in range(2) for number in (1, 2, 3)),
        fails_no_write=True,
    ),
    "rolling-upgrade": Scenario(
        summary="earlier software is replaced node by node, then the levels are raised; no write fails",
        wanted=tuple((step, _node(number), 0) for step in (Step.UPGRADE, Step.LEVELS) for number in (1, 2, 3)),
        fails_no_write=True,
        from_old=True,
    ),
    "moves": Scenario(
        summary="partitions move, throttled, while a target, a source and the controller are killed",
        wanted=tuple((step, _CONTROLLER, 1_500) for step in (Step.MOVE_TARGET, Step.MOVE_SOURCE, Step.MOVE_CONTROLLER)),
        nodes=4,
        size=1_500,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a run of a scenario does on this machine. skipped: a reason for each kind that is left out."""

    shape: Shape = USUAL
    strikes: Sequence[Strike] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)


def step_name(kind: Kind | Step) -> str:
    """As `--steps` names it."""
    return kind.value if isinstance(kind, Kind) else kind.name.lower().replace("_", "-")


def step_names(scenario: Scenario) -> list[str]:
    return list(dict.fromkeys(step_name(kind) for kind, _, _ in scenario.wanted))


@contextmanager
def staged(scenario: Scenario, steps: Sequence[str], folder: Path, ways: Ways) -> Iterator[Stage]:
    """What the machine allows of `steps` (empty: of all), and the earlier software while the block runs.

    folder: for trials, and for that software.
    """
    wanted = [one for one in scenario.wanted if not steps or step_name(one[0]) in steps]
    shape = replace(USUAL, proxied=scenario.proxied)
    refused: dict[Kind | Step, str] = {}
    directories = any(kind in DIRECTORY_STEPS for kind, _, _ in wanted)
    if directories:
        shape, refused = _for_directories(shape, folder)
    if not ways.tmpfs:
        refused |= dict.fromkeys((Kind.FULL_DISK, Kind.LOW_DISK), f"no file system can be mounted: {ways.why_not}")
    if scenario.from_old and not has_history():
        refused |= dict.fromkeys((Step.UPGRADE, Step.LEVELS), NO_HISTORY)
    strikes = [_strike(number, one) for number, one in enumerate((one for one in wanted if one[0] not in refused), 1)]
    skipped = {kind.value: why for kind, why in refused.items() if any(kind is one[0] for one in wanted)}
    if scenario.from_old and strikes:
        with old_tree(folder / "old") as old:
            yield Stage(shape=replace(shape, old=old), strikes=strikes, skipped=skipped)
    else:
        yield Stage(shape=shape, strikes=strikes, skipped=skipped)


def _strike(number: int, wanted: Wanted) -> Strike:
    kind, target, hold_ms = wanted
    blow = _BLOWS[kind] if isinstance(kind, Kind) else kind
    return Strike(number=number, kind=kind, blows=((blow, target),), hold_ms=hold_ms, calm_ms=CALM_MS)


_BLOWS = {Kind.FULL_DISK: Blow.FILL, Kind.LOW_DISK: Blow.LOW, Kind.RESTART: Blow.STOP}
assert SPACE_BLOWS == (Blow.FILL, Blow.LOW)


def _for_directories(shape: Shape, folder: Path) -> tuple[Shape, dict[Kind | Step, str]]:
    volume, why_not = kind_of_volume(folder)
    refused: dict[Kind | Step, str] = {}
    if volume is None:
        refused[Step.UNMOUNTED] = f"no file system can be mounted: {why_not}"
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        prefix = WITHOUT_ROOTS_RIGHTS
        if why := why_not_without_rights():
            prefix, refused[Step.CHMOD] = (), why
    return replace(shape, metadata_on_volumes=False, volume=volume, prefix=prefix), refused


def why_not_without_rights() -> str:
    """Why root cannot start a node to which modes of files apply; empty if it can."""
    if shutil.which(WITHOUT_ROOTS_RIGHTS[0]) is None:
        return "root ignores modes, and setpriv is not installed"
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).chmod(0)
        command = [*WITHOUT_ROOTS_RIGHTS, "cat", file.name]
        done = subprocess.run(command, capture_output=True, check=False, timeout=TRIAL_TIMEOUT_S)
    return "" if b"ermission denied" in done.stderr else "root ignores modes, and setpriv does not change that"
