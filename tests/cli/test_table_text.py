"""A table that is laid out by counting characters has the bytes that rich gives, in a pipe and on a screen."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from quorumlog_cli.terminal import output

COLUMNS = ("PARTITION", "LEADER", "REPLICAS", "NAME")
TEXTS = st.one_of(
    st.sampled_from(
        ["", "—", "1,2,3", "-7", "a b", "two  blanks", " led", "trailed ", "ünï", "日本", "tab\there", "[b]x"]
    ),
    st.integers(-5, 10**6).map(str),
    st.text(max_size=12),
)


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 60 columns, with colours, whatever the test runs in."""
    for key in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")


def console(*, on_screen: bool) -> Console:
    width = None if on_screen else output.FULL_WIDTH
    return Console(width=width, markup=False, highlight=False, emoji=False, force_terminal=on_screen)


def by_rich(columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], *, on_screen: bool) -> str:
    """The dumb second answer: all of it by rich."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, right in zip(columns, numeric, strict=True):
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    shown = console(on_screen=on_screen)
    with shown.capture() as captured:
        shown.print(table)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


@given(
    cells=st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS), max_size=5),
    numeric=st.tuples(*[st.booleans()] * 4),
    on_screen=st.booleans(),
)
def test_the_bytes_are_those_of_rich(cells: list[tuple[str, ...]], numeric: tuple[bool, ...], on_screen: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "_console", console)
        found = output.table_text(COLUMNS, cells, numeric, on_screen=on_screen)
    assert found == by_rich(COLUMNS, cells, numeric, on_screen=on_screen)


def test_a_wide_table_is_folded_on_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_console", console)
    cells, numeric = [["x" * 80, "1"]], [False, True]
    found = output.table_text(("A", "B"), cells, numeric, on_screen=True)
    assert found == by_rich(("A", "B"), cells, numeric, on_screen=True)
    assert len(found.splitlines()) > 2


def test_a_large_table_in_a_pipe_does_without_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: bool) -> Console:
        raise AssertionError("rich takes a second for 3,000 rows")

    monkeypatch.setattr(output, "_console", refuse)
    output.show_table(("PARTITION", "REPLICAS", "END"), [[index, [1, 2, 3], None] for index in range(3_000)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "PARTITION  REPLICAS  END"
    assert lines[1] == "        0  1,2,3     —"
    assert len(lines) == 3_001


@pytest.mark.parametrize("command", ["\x1b[2J", "\x1b]0;title\x07", "\x9b2J", "\r", "\x7f", "\u202e", "\x00"])
def test_no_name_commands_the_terminal(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The id of a group, for example, is any text that a client has chosen."""
    output.use(output.Format.TABLE)
    name = f"before{command}after"
    output.show_table(["group", "members"], [[name, [name, "b"]], ["plain", None]])
    output.say(f"{name} is deleted")
    output.complain(f"no group {name}", f"look for {name}")
    told = capsys.readouterr()
    assert not set(told.out + told.err) & (set(command) - set("[2J]0;title"))
    assert told.out.count("before") == 2 and told.err.count("after") == 3


def test_lines_and_other_writings_stay() -> None:
    for text in ("one\ntwo\tthree", "日本", "ünï", "—"):
        assert output.harmless(text) == text


NAME = "g\nadmin-group  1  \x9b2J\u202e\x7f"


def test_a_name_makes_no_row_and_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table(("GROUP", "LAG"), [(NAME, 1), ([NAME], 2)])
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 3 and all(line.isprintable() for line in said.splitlines())
    output.show_json({NAME: NAME})
    output.show_json_line(NAME)
    whole, line = capsys.readouterr().out.split("}")
    assert json.loads(whole + "}") == {NAME: NAME} and json.loads(line) == NAME
    assert not {"\x9b", "\u202e", "\x7f"} & {*whole, *line}
