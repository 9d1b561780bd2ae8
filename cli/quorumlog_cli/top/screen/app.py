"""The screen: a line of state, the tables, the keys. What stands in them comes from `views` and `details`."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from quorumlog.nursery import Nursery
from quorumlog_cli.terminal.output import harmless
from quorumlog_cli.top import details, views
from quorumlog_cli.top.frame import status
from quorumlog_cli.top.screen.explained import SORTS, Explain, Explained
from quorumlog_cli.top.screen.listing import Listing
from quorumlog_cli.top.table import Table
from quorumlog_cli.top.views import GROUP_ORDERS, TOPIC_ORDERS, Choice, Watched
from quorumlog_cli.top.words import cut

Run = Callable[[Callable[[], None]], Coroutine[Any, Any, None]]  # looks until it is cancelled, and tells of each look
KEYS = "tab panel  enter open  e why  s sort  / filter  z zoom  p pause  ? help  q quit"
HELP = """\
tab, shift+tab  the next panel, the one before
1 … 6           quorum, elections, brokers, topics, groups, events
↑ ↓, k j        row; also pgup pgdn home end
enter           open a row: partitions, members, directories; esc goes back
e               why the row is as it is, and what to do
s, r            another order of topics or groups; turn it
/               filter names and events; esc ends it
z               one panel alone, and back
p, space        hold the picture, and go on
q               quit

REC/s, IN/s     growth of the leaders over 15 s: records, bytes
ISR             replicas in sync / replicas
LEADERS         broker:partitions that it leads
LAG             offsets behind the end, of partitions that a member reads
BEHIND          since when; > since before top began
+/s             how fast the lag grows (+) or shrinks (-), over a minute
3!              rows with a problem, also those that a filter hides
"""
CSS = """
Screen { background: ansi_default; color: ansi_default; }
#status { height: 1; text-style: bold; }
#status.good { color: ansi_green; }
#status.warn { color: ansi_yellow; }
#status.bad { color: ansi_red; }
#keys { height: 1; text-style: dim; }
#filter { height: 1; border: none; padding: 0; background: ansi_default; color: ansi_default; display: none; }
#filter.shown { display: block; }
Listing {
    border-top: solid ansi_bright_black; border-title-color: ansi_default; height: 1fr; width: 1fr;
    background: ansi_default; scrollbar-size: 0 0;
}
Listing:focus { border-top: heavy ansi_cyan; border-title-color: ansi_cyan; border-title-style: bold; }
#above { layout: horizontal; height: 6; }
#quorum, #brokers { margin-right: 1; }
#middle { layout: vertical; height: 2fr; }
#elections { display: none; }
.-wide #elections { display: block; width: 30; margin-right: 1; }
.-wide #middle { layout: horizontal; }
.-wide #topics { margin-right: 1; }
.-tall #above { height: 9; }
Help { align: center middle; background: ansi_default; }
Help Static {
    width: 78; max-width: 100%; height: auto; border: round ansi_cyan; padding: 0 1; background: ansi_default;
}
"""
PANELS = ("quorum", "elections", "brokers", "topics", "groups", "events")
OPENS = {"brokers": details.BROKER, "topics": details.TOPIC, "groups": details.GROUP}
_EMPTY = Table("", (), ())


class Help(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "back", show=False),
    ]

    def compose(self) -> ComposeResult:
        yield Static(HELP, markup=False)


class Opened(Screen[None]):
    """What is inside one row, as it is now."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,backspace,left", "dismiss", "back", show=False)]

    def __init__(self, watched: Watched, kind: str, name: str) -> None:
        super().__init__()
        self._watched, self._kind, self._subject = watched, kind, name

    def compose(self) -> ComposeResult:
        yield Static(id="status", markup=False)
        for index, table in enumerate(details.details(self._watched, self._kind, self._subject)):
            yield Listing(table, id=f"inside{index}")
        yield Static("esc back  tab panel  ↑↓ row  ? help", id="keys", markup=False)

    def on_mount(self) -> None:
        self.query(Listing).first().focus()

    def show(self) -> None:
        for listing, table in zip(
            self.query(Listing), details.details(self._watched, self._kind, self._subject), strict=False
        ):
            listing.show(table)


class TopApp(App[Exception | None]):
    CSS = CSS
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "quit", show=False, priority=False),
        Binding("question_mark,h", "help", "help", show=False),
        Binding("slash", "filter", "filter", show=False),
        Binding("s", "sort", "sort", show=False),
        Binding("r", "turn", "turn", show=False),
        Binding("z", "zoom", "zoom", show=False),
        Binding("space,p", "hold", "pause", show=False),
        Binding("escape", "escape", "back", show=False),
        *[Binding(str(index), f"panel('{name}')", name, show=False) for index, name in enumerate(PANELS, 1)],
    ]

    def __init__(
        self, watched: Watched, run: Run, name: str, explain: Explain, wall_ms: Callable[[], int] | None = None
    ) -> None:
        """name: of the cluster, until it has told its id. explain: what a row is asked with."""
        super().__init__(ansi_color=True)
        self.watched, self.choice = watched, Choice()
        self.held = False
        self._run_looks, self._cluster, self._explain = run, name, explain
        self._wall_ms = wall_ms or (lambda: time.time_ns() // 1_000_000)
        self._nursery = Nursery(self._failed)

    def compose(self) -> ComposeResult:
        yield Static(id="status", markup=False)
        with Container(id="above"):
            for name in PANELS[:3]:
                yield Listing(_EMPTY, id=name, opens=OPENS.get(name, ""))
        with Container(id="middle"):
            for name in PANELS[3:5]:
                yield Listing(_EMPTY, id=name, opens=OPENS[name])
        yield Listing(_EMPTY, id=PANELS[5])
        yield Input(id="filter", placeholder="part of a name; enter keeps it, esc ends it")
        yield Static(KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self.query_one("#topics", Listing).focus()
        self._nursery.start(self._run_looks(self.show), "looks")
        self.set_interval(1.0, self._show_status)  # the age of an answer grows by itself
        self.show()

    async def on_unmount(self) -> None:
        await self._nursery.close()

    def _failed(self, _name: str, error: BaseException) -> None:
        self.exit(error if isinstance(error, Exception) else None, return_code=1)

    def show(self) -> None:
        """What is known now, unless the picture is held."""
        self._show_status()
        if self.held or not self.is_running:
            return
        tables = {
            "quorum": views.quorum_table(self.watched),
            "elections": views.elections_table(self.watched),
            "brokers": views.brokers_table(self.watched),
            "topics": views.topics_table(self.watched, self.choice),
            "groups": views.groups_table(self.watched, self.choice),
            "events": views.events_table(self.watched, self.choice),
        }
        base = self.screen_stack[0]
        for name, table in tables.items():
            base.query_one(f"#{name}", Listing).show(table)
        if isinstance(self.screen, Opened):
            self.screen.show()

    def _show_status(self) -> None:
        text, level = status(self.watched, self._wall_ms(), self._cluster)
        if self.held:
            text = f"PAUSED (space goes on)  {text}"
        for line in self.screen.query("#status"):
            assert isinstance(line, Static)
            line.update(cut(harmless(text), self.size.width))
            line.set_classes(level)

    # --- keys ---

    def action_help(self) -> None:
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_hold(self) -> None:
        self.held = not self.held
        self.show()

    def action_panel(self, name: str) -> None:
        listing = self.screen_stack[0].query_one(f"#{name}", Listing)
        if listing.display and self.screen is self.screen_stack[0]:
            listing.focus()

    def action_zoom(self) -> None:
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif isinstance(self.focused, Listing):
            self.screen.maximize(self.focused, container=False)

    def action_sort(self) -> None:
        if isinstance(self.focused, Listing) and self.focused.id == "groups":
            self.choice = replace(self.choice, group_order=_next(GROUP_ORDERS, self.choice.group_order))
        else:
            self.choice = replace(self.choice, topic_order=_next(TOPIC_ORDERS, self.choice.topic_order))
        self.show()

    def action_turn(self) -> None:
        panel = "groups" if isinstance(self.focused, Listing) and self.focused.id == "groups" else "topics"
        self.choice = replace(self.choice, turned=self.choice.turned ^ {panel})
        self.show()

    def action_filter(self) -> None:
        if self.screen is self.screen_stack[0]:
            self.query_one("#filter", Input).add_class("shown")
            self.query_one("#filter", Input).focus()

    def action_escape(self) -> None:
        box = self.screen_stack[0].query_one("#filter", Input)
        if self.screen.maximized is not None:
            self.screen.minimize()
        box.value = ""
        self._leave_filter(box)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.choice = replace(self.choice, needle=event.value)
        self.show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._leave_filter(event.input)

    def _leave_filter(self, box: Input) -> None:
        box.remove_class("shown")
        if box.has_focus:
            self.query_one("#topics", Listing).focus()

    def on_listing_opened(self, event: Listing.Opened) -> None:
        self.push_screen(Opened(self.watched, event.listing.opens, event.key))
        self.call_after_refresh(self._show_status)

    def on_listing_explains(self, event: Listing.Explains) -> None:
        panel = event.listing.id or ""
        if panel == "quorum":
            self._explained("quorum")
        elif panel in SORTS:
            self._explained(f"{SORTS[panel]}/{event.key}")

    def _explained(self, subject: str) -> None:
        self.push_screen(Explained(subject, self._explain))
        self.call_after_refresh(self._show_status)


def _next(orders: tuple[str, ...], now: str) -> str:
    return orders[(orders.index(now) + 1) % len(orders)]
