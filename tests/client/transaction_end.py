"""How a run ends: everything that is late arrives, and what the applications were told is compared with the logs."""

from __future__ import annotations

from quorumlog.client.transactions.machine import Phase
from tests.client.transaction_run import PARTITIONS, Run, Work


def heal(run: Run) -> None:
    """Nothing fails any more, and what is late arrives."""
    run.faults = 0.0
    run.settle()
    while run.late:
        run.late.pop()()
        run.settle()
    for app in run.apps:
        if app.machine.failure is None and app.machine.phase is Phase.COMMITTING:
            for _ in range(50):
                run.settle()
                if app.pending is None and app.machine.phase is Phase.COMMITTING:
                    run.call(app)
            run.settle()
        if app.machine.failure is not None and not app.ended:
            run.count_end(app)
        if app.work is not None and app.work.asked_to_commit and not app.ended:
            raise AssertionError(f"a commit does not end: {app.machine.phase}")
    for _ in range(4):
        run.world.pass_ms(10_000)
        run.settle()


def check(run: Run) -> None:
    """What an application was told is what readers of committed records see."""
    seen: dict[int, bool | None] = {}
    for model in run.partitions.values():
        assert not model.open_producers(), "a transaction hangs"
        seen.update(model.outcomes())
    for work in run.history:
        visible = [bool(seen.get(value)) for value in work.sent]
        if work.told is True:
            assert work.values == work.sent and all(visible), f"a committed record is missing: {work}"
        elif work.asked_to_commit and work.told is None:
            assert len(set(visible)) <= 1, f"a torn transaction: {work}"
        else:
            assert not any(visible), f"a record of an aborted transaction is visible: {work}"


def check_progress(run: Run) -> None:
    """A new producer can do its work at once."""
    app = run.new_app()
    run.apps = [app]
    for _ in range(40):
        run.settle()
        if app.pending is None and app.machine.phase is Phase.UNREADY:
            run.call(app)
    assert app.machine.phase is Phase.READY, app.machine.phase
    app.machine.begin()
    work = app.work = Work()
    run.history.append(work)
    for _ in range(80):
        run.settle()
        if app.pending is not None or app.produce is not None:
            continue
        if app.machine.adds_partitions:
            run.call(app)
        elif not work.values:
            run.send(app, work, PARTITIONS[0])
        elif app.machine.phase is Phase.OPEN:
            app.machine.begin_commit()
            app.machine.flushed()
            work.asked_to_commit = True
        elif work.told is None:
            run.call(app)
    assert work.told is True, (app.machine.phase, app.machine.cause, app.machine.failure)
