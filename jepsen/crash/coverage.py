"""What a sweep has reached: sites, faults, their pairs, and crash images; and what it must reach at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen.crash.faults import Fault, Variant, applicable
from jepsen.crash.runs import Outcome
from jepsen.crash.sites import Site, production_sites

SAMPLE_IMAGES = 4_500  # distinct crash images that a sample must reach at least
WHOLE_IMAGES = 50_000  # and one run of the verb, which runs one whole seed where it is not told otherwise

_READS = "a command's reading of what another software wrote"
_BESIDE = "a reader beside a broker, in another process, by a disk that refuses every change"
_EXPORTS = "a command: what it has not finished has no name yet, and it may be repeated"
_RESTORES = "a command's reading of a backup, before the node that it makes exists"
_PROBES = "a probe: it makes and removes a file that nobody reads, and an error takes the directory offline"

UNREACHED: dict[tuple[str, str], str] = {
    ("storage/quorumlog_storage/foreign/source.py", "find_source"): _READS,
    ("storage/quorumlog_storage/foreign/source.py", "_of_segment"): _READS,
    ("storage/quorumlog_storage/foreign/source.py", "_read"): _READS,
    ("storage/quorumlog_storage/foreign/kafka_metadata.py", "topic_settings"): _READS,
    ("storage/quorumlog_storage/foreign/log_directory.py", "look_into"): _BESIDE,
    ("storage/quorumlog_storage/directory/offset_files.py", "offsets_at"): _BESIDE,
    ("storage/quorumlog_storage/foreign/log_reader.py", "names_in"): _BESIDE,
    ("storage/quorumlog_storage/foreign/log_reader.py", "_load_padded"): _BESIDE,
    ("storage/quorumlog_storage/foreign/log_reader.py", "_end_of"): _BESIDE,
    ("storage/quorumlog_storage/foreign/unfinished.py", "is_unfinished"): _BESIDE,
    ("storage/quorumlog_storage/foreign/unfinished.py", "_is_zero"): _BESIDE,
    ("quorumlog/spark/read/files.py", "_no_partitions"): _BESIDE,
    ("storage/quorumlog_storage/foreign/export.py", "Export.__init__"): _EXPORTS,
    ("storage/quorumlog_storage/foreign/export.py", "Export.finish"): _EXPORTS,
    ("server/quorumlog_server/restoring/backup_folder.py", "Backup.batches"): _RESTORES,
    ("server/quorumlog_server/restoring/backup_folder.py", "_batch"): _RESTORES,
    ("server/quorumlog_server/restoring/backup_folder.py", "read_backup"): _RESTORES,
    ("server/quorumlog_server/restoring/restore.py", "check_empty"): _RESTORES,
    ("storage/quorumlog_storage/directory/directory.py", "DirectoryProbe._identity"): _PROBES,
    ("storage/quorumlog_storage/directory/directory.py", "DirectoryProbe._make_a_file"): _PROBES,
    (
        "server/quorumlog_server/directories/metadata_repair.py",
        "_stopped",
    ): "a command's lock, on a node that does not run; it changes nothing",
    (
        "server/quorumlog_server/directories/metadata_repair.py",
        "_last_epoch",
    ): "a command's reading, on a node that does not run",
    (
        "server/quorumlog_server/directories/recover.py",
        "metadata_log_in",
    ): "a command's reading, on a node that does not run",
    (
        "quorum/quorumlog_quorum/snapshots/reader.py",
        "SnapshotReader._read_large",
    ): "a batch of more than a piece; ours are smaller",
    (
        "quorum/quorumlog_quorum/snapshots/log_aside.py",
        "set_log_aside",
    ): "a command, on a node that does not run; it may be repeated",
    ("quorum/quorumlog_quorum/snapshots/log_aside.py", "_set_aside"): "likewise",
    ("quorum/quorumlog_quorum/snapshots/log_aside.py", "_end_of"): "a command's reading, on a node that does not run",
    (
        "broker/quorumlog_broker/logdirs/space_checks.py",
        "_check",
    ): "a measurement; an error leaves the last one in force",
    ("cli/quorumlog_cli/offline/audit_metadata.py", "_is_kafkas"): "a command's reading, on a node that does not run",
    ("cli/quorumlog_cli/offline/audit_metadata.py", "_check_votes"): "likewise",
    ("cli/quorumlog_cli/offline/segment_list.py", "_segment"): "likewise",
    ("cli/quorumlog_cli/offline/segment_list.py", "_header_at"): "likewise",
}


@dataclass
class Coverage:
    """runs: by (site as text, fault). broken: of the runs, in order.

    images: hashes of all. struck: of those that the struck call left, and not a power cut after the start that
    followed. Neither is ever iterated.

    variants: runs of each. recovered: by workload, how many runs ended in each state that a start has recovered.
    """

    runs: dict[tuple[str, Fault], int] = field(default_factory=dict)
    starts: int = 0
    images: set[bytes] = field(default_factory=set)
    struck: set[bytes] = field(default_factory=set)
    variants: dict[Variant, int] = field(default_factory=dict)
    recovered: dict[str, dict[str, int]] = field(default_factory=dict)
    broken: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        key = (outcome.case.site, outcome.case.fault)
        self.runs[key] = self.runs.get(key, 0) + 1
        self.starts += len(outcome.images)
        self.images.update(outcome.images)
        self.struck.update(outcome.images[:1])
        variant, name = outcome.case.variant, outcome.case.workload
        self.variants[variant] = self.variants.get(variant, 0) + 1
        if not outcome.broken:
            states = self.recovered.setdefault(name, {})
            states[outcome.recovered] = states.get(outcome.recovered, 0) + 1
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

    @property
    def states(self) -> int:
        """Different states that the starts right after the struck calls have recovered."""
        return sum(len(states) for states in self.recovered.values())

    def _recovered_lines(self) -> list[str]:
        """By workload: the states that starts have recovered, and the one that came most often."""
        lines = [f"{'workload':<34} {'runs':>7} {'states':>7}  the most frequent state"]
        for name, states in sorted(self.recovered.items()):
            often = max(states, key=lambda state: (states[state], state))
            lines.append(f"{name:<34} {sum(states.values()):>7,} {len(states):>7,}  {states[often]:,}: {often or '-'}")
        return lines

    def lines(self) -> list[str]:
        """The closing table."""
        sites = production_sites().found
        lines = [f"{'fault':<12} {'sites':>6} {'reached':>8} {'runs':>8}"]
        for fault in Fault:
            meets = [site for site in sites if fault in applicable(site)]
            reached = [site for site in meets if (str(site), fault) in self.runs]
            runs = sum(self.runs.get((str(site), fault), 0) for site in meets)
            lines.append(f"{fault.value:<12} {len(meets):>6} {len(reached):>8} {runs:>8,}")
        lines.append("variants: " + ", ".join(f"{one.value} {self.variants.get(one, 0):,}" for one in Variant))
        lines += self._recovered_lines()
        pairs = sum(len(applicable(site)) for site in sites)
        runs = sum(self.runs.values())
        lines.append(
            f"{len(sites)} sites, {len(Fault)} faults: {len(self.runs)} of {pairs} pairs in {runs:,} runs; "
            f"{self.starts:,} starts from {len(self.images):,} distinct crash images"
        )
        lines.append(
            f"{len(self.struck):,} of the images are what the struck call left, the others come from a power cut after "
            f"the start that followed; starts have recovered {self.states:,} different states"
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
