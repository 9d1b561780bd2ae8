"""Topics, and one of them with its partitions and settings."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response

from quorumlog.watch.past import NO_RATE
from quorumlog.watch.sample import Part, Topic
from quorumlog_console.access import Access
from quorumlog_console.page import ask, not_shown, page, render, sample_of
from quorumlog_console.pages.listing import listing
from quorumlog_console.pages.setting_rows import setting_rows
from quorumlog_console.trouble import trouble

STATES = {
    "under": ("under-replicated", lambda topic: topic.under_replicated > 0),
    "offline": ("without a leader", lambda topic: topic.offline > 0),
    "moved": ("not led by the preferred replica", lambda topic: any(one.is_led_by_another for one in topic.partitions)),
}


@page
async def topics(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    rates = access.past.topic_rates()
    state = request.query_params.get("state", "")
    is_internal_shown = request.query_params.get("internal") == "1"
    found: Iterable[Topic] = sample.topics.values()
    if not is_internal_shown:
        found = (one for one in found if not one.is_internal)
    if state in STATES:
        found = filter(STATES[state][1], found)
    listed = listing(
        request,
        found,
        lambda topic: topic.name,
        {
            "name": lambda topic: topic.name,
            "partitions": lambda topic: len(topic.partitions),
            "replication": lambda topic: topic.replication,
            "under": lambda topic: topic.under_replicated,
            "offsets": lambda topic: topic.offsets,
            "size": lambda topic: topic.size_bytes,
            "records": lambda topic: rates.get(topic.name, NO_RATE).records or 0,
            "bytes": lambda topic: rates.get(topic.name, NO_RATE).bytes or 0,
        },
        "name",
        kept={"state": state if state in STATES else "", "internal": "1" if is_internal_shown else ""},
    )
    return render(
        request,
        "topics.html",
        "Topics",
        access,
        is_live=True,
        listed=listed,
        rates=rates,
        no_rate=NO_RATE,
        states={name: words for name, (words, _) in STATES.items()},
        state=state,
        is_internal_shown=is_internal_shown,
        missing=not_shown(sample, Part.TOPICS, Part.OFFSETS, Part.DISKS),
    )


@page
async def topic(request: Request, access: Access) -> Response:
    sample = await sample_of(request, access)
    name = request.path_params["name"]
    found = sample.topics.get(name)
    if found is None:
        return trouble(
            request, 404, f"There is no topic {name}",
            "Or you may not Describe it; or it was made within the last seconds.", access,
        )  # fmt: skip
    configs, configs_missing = await ask(lambda: access.admin.describe_configs(name))
    groups = [
        (group, sum(max(0, one.lag) for one in group.counted if one.topic == name))
        for group in sample.groups.values()
        if any(one.topic == name for one in group.offsets)
    ]
    return render(
        request,
        "topic.html",
        f"Topic {name}",
        access,
        is_live=True,
        topic=found,
        rate=access.past.topic_rate(name),
        course=access.past.topic_course(name),
        groups=sorted(groups, key=lambda one: -one[1]),
        settings=[] if configs is None else setting_rows(configs),
        settings_missing=configs_missing,
        missing=not_shown(sample, Part.OFFSETS, Part.DISKS, Part.GROUPS),
    )
