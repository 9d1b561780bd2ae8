"""docs/design.md names what exists, and its pictures are those that docs/pictures/design.py draws."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text()
_PATH = re.compile(r"`((?:[\w.]+/)+(?:[\w.]+)?)`")


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("design_pictures", ROOT / "docs" / "pictures" / "design.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where dataclasses look for it
    spec.loader.exec_module(made)
    return made


def test_each_path_exists() -> None:
    named = _PATH.findall(PAGE)
    assert len(named) > 25
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_pictures_are_drawn_by_the_script() -> None:
    """After a change: python docs/pictures/design.py"""
    folder, drawn = ROOT / "docs" / "pictures", script().PICTURES
    assert [name for name, draw in drawn.items() if (folder / name).read_text() != draw()] == []
    assert set(drawn) == {path.name for path in folder.glob("design-*.svg")}
    assert all(f"](pictures/{name})" in PAGE for name in drawn)


def test_nothing_lies_outside_of_a_picture() -> None:
    for name, draw in script().PICTURES.items():
        tree = ElementTree.fromstring(draw())
        _, _, width, height = map(float, tree.attrib["viewBox"].split())
        boxes = [one.attrib for one in tree.iter("{http://www.w3.org/2000/svg}rect") if "x" in one.attrib]
        assert len(boxes) > 5, name
        for box in boxes:
            assert float(box["x"]) >= 0 and float(box["x"]) + float(box["width"]) <= width, (name, box)
            assert float(box["y"]) >= 0 and float(box["y"]) + float(box["height"]) <= height, (name, box)


def test_a_text_that_does_not_fit_is_refused() -> None:
    made = script()
    with pytest.raises(made.TooWide):
        made.Picture(200, 100).box(0, 0, 40, 20, ["much wider than that"])
