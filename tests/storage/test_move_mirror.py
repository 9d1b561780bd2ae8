"""The simulation's mirror of a log never loses sight of one that moves: at each call of the disk it is there."""

from __future__ import annotations

from move_world import NAME, TOPIC, MoveWorld

from jepsen.sim.truth.log_mirror import LogMirror

LIVE, MOVED, COPY = "/data/t-0", "/other/t-0", f"/other/{NAME}"


def moving_world() -> tuple[MoveWorld, LogMirror]:
    world = MoveWorld()
    world.create()
    world.fill(8)
    world.begin()
    return world, LogMirror(world.disk, LIVE, topic_id=TOPIC, others=[MOVED])


def test_a_log_that_moves_is_there_and_durable_at_every_moment() -> None:
    world, mirror = moving_world()
    world.catch_up()
    end, chain, paths = mirror.end, mirror.chain_at(mirror.end), list[str]()

    def look(_kind: str, _path: str, _digest: bytes) -> None:
        mirror.forget()
        assert (mirror.end, mirror.durable_end(), mirror.chain_at(end)) == (end, end, chain)
        paths.append(mirror.path)

    world.disk.trace = look
    world.promote()
    assert list(dict.fromkeys(paths)) == [LIVE, COPY, MOVED]


def test_a_copy_that_is_not_complete_is_not_the_log() -> None:
    world, mirror = moving_world()
    world.step()
    assert mirror.path == LIVE and mirror.end > 0
    world.source.disk.rename(LIVE, "/data/t-0.lost")
    mirror.forget()
    assert not mirror.is_here and mirror.end == mirror.durable_end() == 0
