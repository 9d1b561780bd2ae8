"""Decides which slice is next, and what a slice's end, a new commit and a new round change. Pure.

The turn is that of the kind to which the least time was charged, measured by its share. So at any moment the charges of
two unfinished kinds, each divided by its share, differ by at most one slice. A kind that enters later (a new row of the
table, a new round, a table that is begun anew) is charged what the one farthest behind has had: it gets its turns from
now on, and does not keep the others waiting until it has caught up. Kinds that were left out by `only` do catch up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from jepsen.nightly.findings import Found
from jepsen.nightly.state import Finding, State
from jepsen.nightly.work import STRIDE, Slice, Work, turn_and_row

LEAST_CHARGE_S = 1.0  # of a slice: kinds whose slices fail at once take turns, too


class Plan:
    """The state and the table. only: names of the kinds that take turns; empty: all."""

    def __init__(self, works: Sequence[Work], state: State, only: Collection[str] = ()) -> None:
        self.works, self.state = works, state
        self._only = only
        self._enter([work for work in works if work.name not in state.works])

    @property
    def chosen(self) -> list[Work]:
        return [work for work in self.works if not self._only or work.name in self._only]

    def left(self, work: Work) -> int:
        """Units that the round still wants of it."""
        return max(0, work.whole - self.state.of(work.name).done)

    @property
    def is_done(self) -> bool:
        """Nothing is left of the chosen kinds."""
        return not any(self.left(work) for work in self.chosen)

    def next(self) -> Slice | None:
        """None: nothing is left."""
        unfinished = [work for work in self.chosen if self.left(work)]
        if not unfinished:
            return None
        return self.slice_of(min(unfinished, key=self._charge))  # the first one, if several have had as much

    def slice_of(self, work: Work) -> Slice:
        """The next one of this kind, of which something is left."""
        first, count = self.state.of(work.name).next, min(work.slice, self.left(work))
        if work.is_table:
            turn, row = turn_and_row(first)
            if row >= work.whole:  # the end of the table, or it is shorter now
                turn, row = turn + 1, 0
            first, count = turn * STRIDE + row, min(count, work.whole - row)
        assert count > 0, f"nothing is left of {work.name}"
        return Slice(
            number=self.state.slices + 1,
            kind=work.name,
            first=first,
            count=count,
            command=work.command(first, count),
            limit_s=work.limit_s,
        )

    def note(self, ended: Slice, took_s: float, found: Iterable[Found], output: str, date: str) -> list[Finding]:
        """A slice has ended. Returns its findings, as they are in the state now."""
        progress = self.state.of(ended.kind)
        assert ended.first >= progress.next and ended.number == self.state.slices + 1
        self.state.slices = ended.number
        progress.next = ended.first + ended.count
        progress.done += ended.count
        progress.all_units += ended.count
        progress.spent_s += took_s
        progress.all_s += took_s
        progress.charged_s += max(took_s, LEAST_CHARGE_S)
        return [self._note_one(ended.kind, one, output, date) for one in found]

    def adopt(self, commit: str) -> list[str]:
        """The tree is at this commit. Returns what that changes, in lines for people; none if it is the one before."""
        before, self.state.commit = self.state.commit, commit
        if before in ("", commit):
            return []
        anew = [work for work in self.works if work.is_table and self.state.of(work.name).done]
        for work in anew:
            progress = self.state.of(work.name)
            turn, row = turn_and_row(progress.next)
            progress.next = (turn + 1) * STRIDE + row  # another turn, from where it stood: short nights reach all rows
            progress.done, progress.spent_s = 0, 0.0
        self._enter(anew)
        lines = [f"the commit is {commit}; it was {before}"]
        if anew:
            lines.append(f"begun anew, as tables over the tree: {', '.join(work.name for work in anew)}")
        if going_on := [work.name for work in self.works if not work.is_table]:
            lines.append(f"go on upwards: {', '.join(going_on)}")
        if self.state.open:
            lines.append(f"{len(self.state.open)} findings of earlier commits stay in the report")
        return lines

    def begin_round(self) -> None:
        """Of the chosen kinds, of which nothing is left."""
        assert self.is_done
        for work in self.chosen:
            progress = self.state.of(work.name)
            progress.done, progress.spent_s, progress.charged_s = 0, 0.0, 0.0
            progress.round += 1
        self._enter(self.chosen)

    def _charge(self, work: Work) -> float:
        """Seconds for a share of 1."""
        return self.state.of(work.name).charged_s / work.share

    def _enter(self, new: Sequence[Work]) -> None:
        """These kinds take turns from now on."""
        others = [self._charge(work) for work in self.works if work not in new and self.left(work)]
        for work in new:
            progress = self.state.of(work.name)
            progress.charged_s = max(progress.charged_s, min(others, default=0.0) * work.share)

    def _note_one(self, kind: str, found: Found, output: str, date: str) -> Finding:
        """What was found before, and is open, stays one finding."""
        state = self.state
        same = [one for one in state.open if one.kind == kind and one.replays[:1] == list(found.replays[:1])]
        finding = Finding(
            number=same[0].number if same else max((one.number for one in state.findings), default=0) + 1,
            kind=kind,
            verdict=found.verdict,
            what=list(found.what),
            replays=list(found.replays),
            output=output,
            commit=state.commit,
            since=same[0].since if same else state.commit,
            date=date,
        )
        if same:
            state.findings[state.findings.index(same[0])] = finding
        else:
            state.findings.append(finding)
        return finding
