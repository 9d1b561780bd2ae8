"""The pictures of docs/design.md, as SVG: `python docs/pictures/design.py` writes them beside itself.

Each is drawn on white, so that it is legible on a dark page, too. `WIDTHS` estimates how wide a text is; what does not
fit its box is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).resolve().parent
INK, PULL, LOST = "#51606f", "#2a6aa9", "#b3261e"
FILLS = {  # kind: fill, stroke
    "box": ("#f5f7fa", INK),
    "core": ("#e5f1e5", "#3f7d46"),
    "edge": ("#fdf1dd", "#a9752a"),
    "plain": ("#ffffff", INK),
    "e5": ("#dce8f6", PULL),
    "e6": ("#e5f1e5", "#3f7d46"),
    "lost": ("#f9dedc", LOST),
}
WIDTHS = {13: 6.9, 11: 5.8}  # px of a character, by px of the font
LINE = 15


class TooWide(Exception):
    """A text does not fit its box."""


@dataclass
class Picture:
    """px throughout; (x, y) is the upper left corner of a box."""

    width: int
    height: int
    items: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, *, size: int = 13, middle: bool = False, bold: bool = False) -> None:
        look = ' text-anchor="middle"' * middle + ' font-weight="600"' * bold
        self.items.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}"{look} fill="#1c2733">{escape(text)}</text>')

    def box(self, x: float, y: float, w: float, h: float, lines: Sequence[str], kind: str = "box") -> None:
        """The first line is larger than the others; all are in the middle."""
        fill, stroke = FILLS[kind]
        self.items.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="4" fill="{fill}" stroke="{stroke}"/>'
        )
        top = y + h / 2 - LINE * (len(lines) - 1) / 2 + 4
        for number, line in enumerate(lines):
            size = 11 if number else 13
            if len(line) * WIDTHS[size] > w:
                raise TooWide(f"{line!r} in {w:g} px")
            self.text(x + w / 2, top + LINE * number, line, size=size, middle=True)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, pull: bool = False) -> None:
        """pull: dashed, of somebody who asks for more."""
        colour = PULL if pull else INK
        dashes = ' stroke-dasharray="6 3"' if pull else ""
        self.items.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="1.6"'
            f'{dashes} marker-end="url(#{"pull" if pull else "tip"})"/>'
        )

    def svg(self, title: str) -> str:
        tips = "".join(
            f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
            for name, colour in (("tip", INK), ("pull", PULL))
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            'font-family="ui-sans-serif, system-ui, sans-serif">',
            f"<title>{escape(title)}</title>",
            f"<defs>{tips}</defs>",
            f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>',
        )
        return "\n".join((*head, *self.items, "</svg>", ""))


@dataclass(frozen=True, slots=True)
class Step:
    """A message between two lanes, or what one of them does (`to` is itself). pull: it asks for more."""

    of: int
    to: int
    text: str
    kind: str = "plain"
    pull: bool = False


def sequence(title: str, lanes: Sequence[tuple[str, str]], steps: Sequence[Step], lane_px: int = 216) -> str:
    """Lanes from left to right, with a second line each; time goes down."""
    row, head = 44, 74
    picture = Picture(lane_px * len(lanes) + 20, head + row * len(steps) + 20)
    middle = [10 + lane_px * number + lane_px / 2 for number in range(len(lanes))]
    for x in middle:
        picture.items.append(
            f'<line x1="{x:g}" y1="56" x2="{x:g}" y2="{picture.height - 12}" stroke="#c3ccd4" stroke-width="1.2"/>'
        )
    for x, lane in zip(middle, lanes, strict=True):
        picture.box(x - lane_px / 2 + 8, 12, lane_px - 16, 44, lane)
    for number, step in enumerate(steps):
        y = head + row * number
        said = f"{number + 1}. {step.text}"
        if step.of == step.to:
            picture.box(middle[step.of] - lane_px / 2 + 4, y, lane_px - 8, 32, ("", said)[1:], step.kind)
            continue
        left, right = sorted((middle[step.of], middle[step.to]))
        if len(said) * WIDTHS[11] > right - left:
            raise TooWide(f"{said!r} in {right - left:g} px")
        picture.text((left + right) / 2, y + 12, said, size=11, middle=True)
        picture.arrow(middle[step.of], y + 20, middle[step.to], y + 20, pull=step.pull)
    return picture.svg(title)


def a_record() -> str:
    lanes = [
        ("producer", "quorumlog.client"),
        ("leader: its loop", "produce_path, partition"),
        ("leader: its disk", "writer"),
        ("follower: its loop", "fetcher, follower"),
        ("follower: its disk", "writer"),
    ]
    return sequence(
        "From produce to acknowledged",
        lanes,
        [
            Step(0, 1, "a batch, by either wire"),
            Step(1, 1, "look, number, offset", "core"),
            Step(1, 2, "append to the file"),
            Step(3, 1, "fetch from offset 7", pull=True),
            Step(1, 3, "the batch, from the tail"),
            Step(2, 1, "synced: end is 8"),
            Step(3, 4, "append and sync"),
            Step(4, 3, "synced: end is 8"),
            Step(3, 1, "fetch from offset 8", pull=True),
            Step(1, 1, "ISR is at 8: commit", "core"),
            Step(1, 0, "acknowledged, offset 7"),
            Step(1, 3, "high watermark 8"),
        ],
    )


def metadata() -> str:
    lanes = [
        ("any broker", "api.handlers"),
        ("active controller", "controller.runner"),
        ("voters", "raft: a majority"),
        ("every node", "metadata.loader"),
        ("its broker", "replicas.reconciler"),
    ]
    return sequence(
        "From a request to an image on every node",
        lanes,
        [
            Step(0, 1, "create topic orders"),
            Step(1, 1, "draft from the tip image", "core"),
            Step(1, 2, "append in this turn"),
            Step(2, 1, "fetch: synced up to 41", pull=True),
            Step(1, 1, "majority: commit 41", "core"),
            Step(2, 3, "committed records"),
            Step(3, 3, "image 40 + delta = image 41", "core"),
            Step(3, 4, "delta"),
            Step(4, 4, "open logs, lead, fetch", "core"),
            Step(1, 0, "done"),
            Step(0, 0, "own image shows it"),
        ],
    )


def elections() -> str:
    picture = Picture(1080, 560)
    moments = [
        (
            "Epoch 5: node 1 leads. All in sync at 4; 1 alone has 4 and 5",
            [("e5", 6, "ISR 1 2 3"), ("e5", 4, ""), ("e5", 4, "")],
            "leader 1, high watermark 4",
        ),
        (
            "Node 3 dies, then node 1. The ISR is below min.insync.replicas=2: node 1, gone last, is eligible (ELR)",
            [("e5", 6, "ELR, dead"), ("e5", 4, "ISR 2"), ("e5", 4, "dead")],
            "2 leads in epoch 6; acks=all is refused",
        ),
        (
            "Node 3 is back: it fetches from (4, epoch 5), has nothing to cut, joins the ISR. The ELR is empty",
            [("e5", 6, "dead"), ("e6", 4, "ISR 2 3"), ("e6", 4, "")],
            "acks=all is taken: 4 and 5 are new records",
        ),
        (
            "Node 1 is back: it fetches from (6, epoch 5) and is told that epoch 5 ended at 4. It cuts, and follows",
            [("lost", 6, "cut 4, 5"), ("e6", 4, "ISR 1 2 3"), ("e6", 4, "")],
            "what it cut was never acknowledged",
        ),
    ]
    for number, (title, logs, after) in enumerate(moments):
        _moment(picture, 16 + 136 * number, f"{number + 1}. {title}", logs, after)
    return picture.svg("Elections, leader epochs, ELR and truncation")


def _moment(picture: Picture, y: int, title: str, logs: Sequence[tuple[str, int, str]], after: str) -> None:
    """logs: of each node its state, how many offsets of epoch 5 it has, and what is said of it."""
    picture.text(16, y + 12, title, bold=True)
    for node, (state, count, said) in enumerate(logs, 1):
        top = y + 22 + 32 * (node - 1)
        picture.text(16, top + 18, f"node {node}")
        for offset in range(6):
            old = offset < min(count, 4) or (offset < count and state == "e5")
            if old:
                picture.box(76 + 62 * offset, top, 58, 26, [f"{offset} (e5)"], "e5")
            elif state == "e6":
                picture.box(76 + 62 * offset, top, 58, 26, [f"{offset} (e6)"], "e6")
            elif offset < count:
                picture.box(76 + 62 * offset, top, 58, 26, [f"{offset} (e5)"], "lost")
        picture.text(470, top + 18, said)
    picture.text(620, y + 72, after)


def simulation() -> str:
    picture = Picture(1080, 470)
    picture.box(330, 20, 420, 300, [])
    picture.text(540, 44, "production code, unchanged", middle=True, bold=True)
    for number, lines in enumerate(
        (
            ("shells: asyncio loops", "wait, call, retry; perform effects in order"),
            ("cores: raft, partition, controller, groups", "event and time in, effects out; no clock, no I/O"),
            ("log engine: the same class for all logs", "segments, indexes, recovery"),
            ("codecs of both wires", "every message is encoded and decoded"),
        )
    ):
        picture.box(350, 60 + 62 * number, 380, 52, lines, "core" if number == 1 else "plain")
    for side, x, title, names in (
        (
            "real",
            20,
            "the real edges",
            ("sockets, gRPC", "files, fsync, threads", "the machine's clock", "random numbers"),
        ),
        (
            "simulated",
            790,
            "the simulated edges",
            (
                "network that cuts, delays, repeats",
                "disk that forgets, fails, hangs, fills",
                "virtual clock",
                "random numbers of the seed",
            ),
        ),
    ):
        picture.text(x + 135, 44, title, middle=True, bold=True)
        for number, name in enumerate(names):
            y = 60 + 62 * number
            picture.box(x, y, 270, 52, [name], "edge")
            picture.arrow(*((x + 270, y + 26, 350, y + 26) if side == "real" else (x, y + 26, 730, y + 26)))
    for number, lines in enumerate(
        (
            ("scheduler", "one queue of all that is to happen"),
            ("nemesis", "kills, cuts, pauses, fills disks"),
            ("truth and invariants", "looked at after every step"),
            ("clients and checkers", "whatever was told must hold"),
        )
    ):
        picture.box(20 + 263 * number, 350, 251, 52, lines, "box")
    picture.text(
        540,
        436,
        "a seed gives the whole run: ./dev sim --seed 7 plays the same failure again, step by step",
        middle=True,
    )
    return picture.svg("The same code on real and on simulated edges")


PICTURES: dict[str, Callable[[], str]] = {
    "design-record.svg": a_record,
    "design-elections.svg": elections,
    "design-metadata.svg": metadata,
    "design-simulation.svg": simulation,
}


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw())
