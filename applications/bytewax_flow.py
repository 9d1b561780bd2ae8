"""Bytewax: a dataflow from topic to topic, `python -m bytewax.run`, once to the end and again for what came later."""

from __future__ import annotations

from functools import partial

from applications.application import Application, Stage
from applications.environments import get_python
from applications.running import Process

REQUIREMENTS = ("bytewax[kafka]",)
TIMEOUT_S = 90.0
LINES = 500

FLOW = """\
import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, operators as kop
from bytewax.dataflow import Dataflow

BROKERS = {servers!r}

flow = Dataflow("upper")
lines = kop.input("in", flow, brokers=BROKERS, topics=["lines"], tail=False)
upper = op.map("upper", lines.oks, lambda line: KafkaSinkMessage(line.key, line.value.upper()))
kop.output("out", upper, brokers=BROKERS, topic="upper")
"""

prepare = partial(get_python, name="bytewax", requirements=REQUIREMENTS)


def run(stage: Stage) -> None:
    """Each line is there once, in capitals; a second run with the recovery store takes only the new ones."""
    python = str(prepare(stage.cache))
    (stage.folder / "flow.py").write_text(FLOW.format(servers=stage.cluster.bootstrap_servers.split(",")))
    (stage.folder / "recovery").mkdir()
    stage.cluster.create("lines", "upper", partitions=3)
    store = Process(
        [python, "-m", "bytewax.recovery", "recovery", "1"], log=stage.folder / "recovery.log", cwd=stage.folder
    )
    store.wait(TIMEOUT_S)
    for round_ in (0, 1):
        stage.cluster.send("lines", [f"line {round_} {number}" for number in range(LINES)])
        command = [python, "-m", "bytewax.run", "flow", "-r", "recovery", "-s", "0", "-b", "0"]
        with Process(command, log=stage.folder / f"flow-{round_}.log", cwd=stage.folder) as flow:
            flow.wait(TIMEOUT_S)
        found = sorted(value or b"" for _, value in stage.cluster.read("upper"))
        assert found == sorted(f"LINE {one} {number}".encode() for one in range(round_ + 1) for number in range(LINES))


BYTEWAX = Application("bytewax", "a dataflow from topic to topic, resumed from its recovery store", prepare, run)
