"""What a sweep has reached: sites, faults, their pairs, and crash images; and what it must reach at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen.crash.faults import Fault, applicable
from jepsen.crash.runs import Outcome
from jepsen.crash.sites import Site, production_sites

SAMPLE_IMAGES = 2_100  # distinct crash images that a sample must reach at least
SEED_IMAGES = 11_000  # and a whole seed

UNREACHED: dict[tuple[str, str], str] = {
    ("cli/server/metadata_repair.py", "_stopped"): "a command's lock, on a node that does not run; it changes nothing",
    ("cli/server/metadata_repair.py", "_last_epoch"): "a command's reading, on a node that does not run",
    ("broker/logdirs/space_checks.py", "_check"): "a measurement; an error leaves the last one in force",
    ("storage/offset_index.py", "OffsetIndexFile.rename"): "nothing renames a segment yet: compaction will",
}


@dataclass
class Coverage:
    """runs: by (site as text, fault). images: their hashes; never iterated. broken: of the runs, in order."""

    runs: dict[tuple[str, Fault], int] = field(default_factory=dict)
    starts: int = 0
    images: set[bytes] = field(default_factory=set)
    broken: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        key = (outcome.case.site, outcome.case.fault)
        self.runs[key] = self.runs.get(key, 0) + 1
        self.starts += len(outcome.images)
        self.images.update(outcome.images)
        if outcome.broken:
            self.broken.append(outcome)

    def shortfalls(self, least_images: int) -> list[str]:
        """What was not reached although it must be; and what is allowed not to be although it was reached."""
        found = []
        for site in production_sites().found:
            missing = [fault.value for fault in applicable(site) if (str(site), fault) not in self.runs]
            allowed = allowed_reason(site)
            if missing and not allowed:
                found.append(f"{site} in {site.function} never met: {', '.join(missing)}")
            if allowed and not missing:
                found.append(f"{site} in {site.function} is reached now: take it from UNREACHED")
        if len(self.images) < least_images:
            found.append(f"{len(self.images):,} distinct crash images, fewer than {least_images:,}")
        return found

    def lines(self) -> list[str]:
        """The closing table."""
        sites = production_sites().found
        lines = [f"{'fault':<12} {'sites':>6} {'reached':>8} {'runs':>8}"]
        for fault in Fault:
            meets = [site for site in sites if fault in applicable(site)]
            reached = [site for site in meets if (str(site), fault) in self.runs]
            runs = sum(self.runs.get((str(site), fault), 0) for site in meets)
            lines.append(f"{fault.value:<12} {len(meets):>6} {len(reached):>8} {runs:>8,}")
        pairs = sum(len(applicable(site)) for site in sites)
        runs = sum(self.runs.values())
        lines.append(
            f"{len(sites)} sites, {len(Fault)} faults: {len(self.runs)} of {pairs} pairs in {runs:,} runs; "
            f"{self.starts:,} starts from {len(self.images):,} distinct crash images"
        )
        for site in sites:
            if allowed_reason(site):
                lines.append(f"not reached, allowed: {site} in {site.function} ({allowed_reason(site)})")
        return lines


def allowed_reason(site: Site) -> str:
    """Why a site need not be reached; empty if it must be."""
    return UNREACHED.get((site.file, site.function), "")


def table(sites: tuple[Site, ...], runs: Mapping[tuple[str, Fault], int]) -> list[str]:
    """Runs by site and fault; `-` where the fault cannot be."""
    lines = [" " * 56 + " ".join(f"{fault.value:>11}" for fault in Fault)]
    for site in sites:
        cells = [str(runs.get((str(site), fault), 0)) if fault in applicable(site) else "-" for fault in Fault]
        lines.append(f"{site!s:<56}" + " ".join(f"{cell:>11}" for cell in cells))
    return lines
