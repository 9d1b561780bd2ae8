"""How a node's process is watched, and what it shows to peers that ask for more than they need."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.settings.key import flag, maybe, names, number, parse_int, setting, text, word

PROVIDERS = "config.providers"
CUT_LINKS = "debug.cut.links.file"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    metrics_port: int | None = setting(
        maybe("metrics.port", parse_int, "Port of /healthz, /readyz and /metrics; 0 takes a free port. Not in Kafka.")
    )
    metrics_host: str = setting(word("metrics.host", "127.0.0.1", "Address for metrics.port. Not in Kafka."))
    metrics_protocol: str = setting(
        word(
            "metrics.security.protocol",
            "PLAINTEXT",
            "How metrics.port speaks: PLAINTEXT, or SSL by the `ssl.*` keys of a listener called METRICS. Not in "
            "Kafka.",
            choices=("PLAINTEXT", "SSL"),
        )
    )
    metrics_detail: str = setting(
        word(
            "metrics.detail",
            "low",
            "high: /metrics tells of each partition, too, which are many series. Not in Kafka.",
            choices=("low", "high"),
        )
    )
    console_listener: str = setting(
        word(
            "console.listener",
            "",
            "HOST:PORT of the console, which shows the cluster in a browser; needs the extra [ui]. Empty: none here. "
            "Not in Kafka.",
        )
    )
    console_client_config: str = setting(
        word(
            "console.client.config",
            "",
            "A file of client options with which the console reaches the cluster; a user in it does not count. Empty: "
            "the node's own listener that takes passwords in clear, or clients without a login. Not in Kafka.",
        )
    )
    log_format: str = setting(
        word(
            "log.format",
            "console",
            "Format of the log: console or json. Not in Kafka.",
            choices=("console", "json"),
        )
    )
    log_level: str = setting(
        word(
            "log.level",
            "info",
            "debug, info, warning or error. Not in Kafka.",
            choices=("debug", "info", "warning", "error"),
        )
    )
    secret_in_clear: bool = setting(
        flag(
            "cluster.secret.in.clear",
            False,
            "Take the secret itself from nodes of software that proves nothing, and show it to them. Only while such "
            "nodes are upgraded. Not in Kafka.",
        )
    )
    cut_links: str | None = setting(
        maybe(
            CUT_LINKS,
            text,
            "A file of addresses of other nodes, HOST:PORT a line, that this node cannot reach; read at its start and "
            "at SIGUSR1. For faults in tests: `quorumlog net cut` writes it. Not in Kafka.",
        )
    )
    providers: tuple[str, ...] = setting(
        names(
            PROVIDERS,
            "",
            "Names for the places of values that stand as ${NAME:...} in the node's own file. "
            "config.providers.NAME.class is Kafka's EnvVarConfigProvider, FileConfigProvider or "
            "DirectoryConfigProvider; the last two need config.providers.NAME.param.allowed.paths.",
        )
    )
    events_max: int = setting(
        number(
            "events.max",
            10_000,
            100,
            "How many of its newest events a node remembers; `quorumlog explain` and /debug/events tell them. Three "
            "quarters are for events of single partitions, an eighth for what clients cause. Not in Kafka.",
            maximum=1_000_000,
        )
    )
    rpc_reflection: bool = setting(flag("rpc.reflection", False, "Serve gRPC reflection. Not in Kafka."))
