"""docs/pictures/screens.py: what an animated picture shows at each time is the screen of that time."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = {"top.svg": 300_000, "console.png": 200_000}
LINES = st.sampled_from(["", "one", "two  three", "<&>", "     five"])


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("screens", PICTURES / "screens.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


screens = _module()


def visible(svg: str, share: float | None) -> dict[tuple[float, float], str]:
    """Text by its place, as a browser shows it. share: of the whole time, in percent; None: where nothing moves."""
    root = ElementTree.fromstring(svg)
    css = root.findtext(f"{SVG}style") or ""
    found: dict[tuple[float, float], str] = {}
    for group in root.findall(f"{SVG}g"):
        name = group.get("class", "").rpartition(" ")[2]
        if name and _is_hidden(css, name.removeprefix("f"), share):
            continue
        for text in group.iter(f"{SVG}text"):
            at = float(text.get("y", "")), float(text.get("x", ""))
            assert at not in found, "two texts at one place"
            found[at] = text.text or ""
    return found


def _is_hidden(css: str, number: str, share: float | None) -> bool:
    if share is None:
        return f".f{number}{{visibility:hidden;" in css
    frames = re.search(rf"@keyframes k{number}{{(.*)}}$", css, re.MULTILINE)
    assert frames is not None
    steps = re.findall(r"([\d.]+)%{visibility:(\w+)}", frames[1])
    assert float(steps[0][0]) == 0
    return [word for at, word in steps if float(at) <= share][-1] == "hidden"


@given(st.lists(st.lists(LINES, max_size=4), min_size=1, max_size=6), st.data())
def test_each_screen_has_its_time(texts: list[list[str]], data: st.DataObject) -> None:
    still = data.draw(st.integers(0, len(texts) - 1))
    made = [
        screens.Screen(index + 1.0, tuple((screens.Run(text),) if text else () for text in lines))
        for index, lines in enumerate(texts)
    ]
    svg = screens.animated(made, 20, still, "a title")
    want = [sorted(text.strip() for text in lines if text) for lines in texts]
    for index, lines in enumerate(want):
        assert sorted(visible(svg, (index + 0.5) * 100 / len(texts)).values()) == lines
    assert sorted(visible(svg, None).values()) == want[still]


def test_what_stays_is_drawn_once() -> None:
    line = (screens.Run("the same"),)
    made = [screens.Screen(at + 1.0, (line, (screens.Run(str(at)),))) for at in range(50)]
    svg = screens.animated(made, 20, 0, "a title")
    assert svg.count("the same") == 1 and svg.count("<text") == 51


@pytest.mark.parametrize("name", MOST_BYTES)
def test_pictures_are_small(name: str) -> None:
    assert 10_000 < (PICTURES / name).stat().st_size <= MOST_BYTES[name]


def test_the_recording_shows_a_node_that_dies_and_comes_back() -> None:
    svg = (PICTURES / "top.svg").read_text()
    seen = [_state_line(svg, share) for share in (1, 60, 99.9, None)]
    assert ["1 fenced" in line for line in seen] == [False, True, False, True]
    assert seen[0].startswith("healthy") and seen[2].startswith("healthy")


def _state_line(svg: str, share: float | None) -> str:
    return min(visible(svg, share).items())[1]
