"""A long list on a page: what is searched for, how it is sorted, which part of it is shown. From the address only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

T = TypeVar("T")
ROWS = 200
MAX_SEARCH = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """rows: of this page. found: of all pages. columns: those that it can be sorted by."""

    rows: list[T]
    found: int
    total: int
    query: str
    sort: str
    is_descending: bool
    page: int
    pages: int
    path: str
    kept: Mapping[str, str]

    def by(self, column: str) -> str:
        """Address of the list sorted by this column; the other way round if it is already."""
        descending = "1" if column == self.sort and not self.is_descending else ""
        return self._address(sort=column, desc=descending, page="")

    def at(self, page: int) -> str:
        return self._address(sort=self.sort, desc="1" if self.is_descending else "", page=str(page))

    def arrow(self, column: str) -> str:
        """As aria-sort has it."""
        if column != self.sort:
            return "none"
        return "descending" if self.is_descending else "ascending"

    def _address(self, **changes: str) -> str:
        values = {**self.kept, "q": self.query, **changes}
        text = urlencode({name: value for name, value in values.items() if value})
        return f"{self.path}?{text}" if text else self.path


def listing(
    request: Request,
    rows: Iterable[T],
    text_of: Callable[[T], str],
    columns: Mapping[str, Callable[[T], Any]],
    default: str,
    *,
    is_descending: bool = False,
    kept: Mapping[str, str] | None = None,
) -> Listing[T]:
    """text_of: what a search looks in, without regard to case. columns: what each sorts by. kept: other parameters."""
    asked = request.query_params
    query = asked.get("q", "")[:MAX_SEARCH]
    sort = asked.get("sort", "")
    descending = asked.get("desc") == "1" if sort in columns else is_descending
    sort = sort if sort in columns else default
    everything = list(rows)
    wanted = query.casefold()
    found = [one for one in everything if wanted in text_of(one).casefold()] if wanted else everything
    found = sorted(found, key=columns[sort], reverse=descending)
    pages = max(1, -(-len(found) // ROWS))
    page = min(pages, max(1, _number(asked.get("page", ""))))
    return Listing(
        rows=found[(page - 1) * ROWS : page * ROWS],
        found=len(found),
        total=len(everything),
        query=query,
        sort=sort,
        is_descending=descending,
        page=page,
        pages=pages,
        path=request.url.path,
        kept=kept or {},
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
