"""A driver in a process of its own, which dies before a step of a number: python driver_script.py SERVERS GROUP TOPIC
SEQUENCE RUN STEP.

It sends the tasks' rows of one batch and commits it, as Spark has it done. STEP counts the steps of `commit` only; -1:
it does not die. It says "died before <step>" or "done".
"""

from __future__ import annotations

import os
import signal
import sys

from quorumlog.spark.write.kafka.delivery import KafkaDelivery
from quorumlog.spark.write.kafka.steps import Step
from tests.spark.decisions.world import TIMEOUT_MS, batch, values_of, write

TASKS = 2


def main(servers: str, group: str, topic: str, sequence: int, run: str, fatal: int) -> None:
    counts = False
    count = 0

    def watch(step: Step) -> None:
        nonlocal count
        if counts and count == fatal:
            print(f"died before {type(step).__name__}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        count += counts

    delivery = KafkaDelivery({"bootstrap_servers": servers}, transaction_timeout_ms=TIMEOUT_MS, watch=watch)
    of = batch(group, sequence, run)
    attempts = [write(delivery, of, b"%d" % task, topic, values_of(sequence, task)) for task in range(TASKS)]
    write(delivery, of, b"stray", topic, [b"stray"])
    counts = True
    delivery.commit(of, [one for one in attempts if one], {"rows": TASKS * len(values_of(0, 0))})
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], int(sys.argv[6]))
