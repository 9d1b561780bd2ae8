"""Consumer groups, and one of them with its members, its lag and the course of it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.watch.sample import Group, Part
from quorumlog.watch.words import duration
from quorumlog_console.access import Access
from quorumlog_console.page import page, render, sample_of
from quorumlog_console.pages.listing import listing
from quorumlog_console.trouble import trouble


@page
async def groups(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    past = access.past
    listed = listing(
        request,
        sample.groups.values(),
        lambda group: group.group_id,
        {
            "name": lambda group: group.group_id,
            "state": lambda group: group.state,
            "members": lambda group: len(group.members),
            "lag": lambda group: group.lag,
            "behind": lambda group: past.behind_ms(group) or 0,
        },
        "lag",
        is_descending=True,
    )
    return render(
        request,
        "groups.html",
        "Groups",
        access,
        is_live=True,
        listed=listed,
        behind={group.group_id: past.behind_ms(group) for group in listed.rows},
        trends={group.group_id: trend_words(past.lag_trend(group.group_id), group) for group in listed.rows},
        missing=sample.missing.get(Part.GROUPS, ""),
    )


def trend_words(trend: float | None, group: Group) -> str:
    """trend: records a second."""
    if trend is None:
        return "not known yet"
    if trend > 0.05:
        return "grows"
    if trend < -0.05:
        return f"shrinks, clear in {duration(group.lag * 1_000 / -trend)}" if group.lag else "shrinks"
    return "steady" if group.lag else "none"


@page
async def group(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    group_id = request.query_params.get("id", "")
    found = sample.groups.get(group_id)
    if found is None:
        return trouble(
            request, 404, f"There is no group {group_id}",
            "Or you may not Describe it; or it was made within the last seconds.", access,
        )  # fmt: skip
    left_over = [one for one in found.offsets if one not in found.counted or one.is_of_former_topic]
    return render(
        request,
        "group.html",
        f"Group {group_id}",
        access,
        is_live=True,
        group=found,
        behind=access.past.behind_ms(found),
        is_longer=access.past.is_older_than_past(found),
        trend=trend_words(access.past.lag_trend(group_id), found),
        course=access.past.group_course(group_id),
        members={one.member_id: one for one in found.members},
        left_over={one.key for one in left_over},
    )
