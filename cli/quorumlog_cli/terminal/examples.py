"""Examples of each command, which `--help` shows below its options.

They can be pasted into a shell: what explains one is a comment. A test parses each with the command's own parser.
"""

from __future__ import annotations

from typing import Any

_TEXT = """
quorumlog up -d                                  # three nodes, in the background
quorumlog up -d -n 1 --port 19092                # one node, at ports of your choice
quorumlog up -d --tls                            # with TLS, a user and access rules
quorumlog up --ui                                # with the console, in a browser
quorumlog console                                # the console alone, at 127.0.0.1:8080
quorumlog console -b 127.0.0.1:9092 --listen 127.0.0.1:9000
quorumlog status
quorumlog status --data ../other/.quorumlog -o json
quorumlog logs 2 -f                              # of node 2, as they come
quorumlog logs --level warning -n 100
quorumlog kill 2                                 # look at: quorumlog status
quorumlog pause 2                                # quorumlog resume 2 continues it
quorumlog resume 2
quorumlog restart 2
quorumlog roll --dry-run                         # the order, and which partitions cannot bear it
quorumlog roll --yes
quorumlog roll --nodes 2,3 --allow-unavailable --yes
quorumlog roll -b 127.0.0.1:9092 --restart-command 'ssh {host} systemctl restart quorumlog' --dry-run
quorumlog net cut 1 2,3                          # node 1 is alone; quorumlog net heal ends it
quorumlog net heal
quorumlog net status
quorumlog down
quorumlog backup create /srv/backups/monday      # of the cluster of this directory, while it runs
quorumlog backup create /srv/backups/monday --rate 50000000 --resume
quorumlog backup show /srv/backups/monday
quorumlog backup verify /srv/backups/monday
quorumlog restore local /srv/backups/monday --data restored -n 3
quorumlog restore node /srv/monday -c 1.properties --nodes 1,2,3 -t 4xQ3mT9vR1yPz0wKjB5dAg --secret-file s
quorumlog restore release --yes                  # retention and expiry act again
quorumlog purge --yes                            # all records are gone

quorumlog topic create orders --partitions 6 -r 3
quorumlog topic create prices -c cleanup.policy=compact --if-not-exists
quorumlog topic create -f topics.toml --if-not-exists --dry-run
quorumlog topic list
quorumlog topic list --internal -o json
quorumlog topic describe orders
quorumlog topic delete orders --if-exists
quorumlog topic alter orders --partitions 12 --dry-run
quorumlog topic alter orders -c retention.ms=86400000
quorumlog topic truncate orders --before 1000 -p 0
quorumlog topic offsets orders
quorumlog topic offsets orders --at 1767225600000      # of the first record from this time on, in ms since 1970
echo hello | quorumlog produce orders
quorumlog produce orders -K : < lines.txt        # KEY:VALUE in each line
quorumlog produce orders --format '%k\\t%h\\t%s' < lines.tsv # KEY, headers as a=1,b=2, VALUE
quorumlog produce orders --value-schema order.avsc -X schema.registry.url=http://localhost:8081 < orders.jsonl
echo | quorumlog produce prices -k apple -Z               # a tombstone: deletes the key where topics are compacted
quorumlog consume orders -e -o json
quorumlog consume orders --since 2h --until 1h -f '%T %k %s\\n'
quorumlog consume orders --tail 10 -e                     # the newest over all partitions
quorumlog consume orders --key user-7 --where '$.price >= 10.50' --where 'header.source = web'
quorumlog consume orders --value-decoder schema -X schema.registry.url=http://localhost:8081 -e
quorumlog consume orders refunds --group billing
quorumlog consume audit --group check -O end -n 10
quorumlog bench produce -t orders -n 100000 --record-size 100 --clients 2 --throughput 20000
quorumlog bench consume -t orders -n 100000
quorumlog bench e2e -t orders -n 1000
quorumlog bench compare last                     # the last two results of one kind in this directory

quorumlog top
quorumlog top --once --filter orders
quorumlog top --once -o json --every 5           # rates over 5 s
quorumlog group list
quorumlog group list --state stable,empty --type consumer -o json
quorumlog group describe billing
quorumlog group describe billing --members --verbose
quorumlog group describe --all-groups --state -o json
quorumlog group delete billing
quorumlog group delete-offsets billing --topic orders --topic refunds:0,1
quorumlog group lag billing
quorumlog group lag billing --time --eta -w
quorumlog group lag billing --threshold 1000 || page-somebody
quorumlog group reset-offsets --group billing --topic orders --to-earliest             # only shows
quorumlog group reset-offsets --group billing --topic orders --to-earliest --execute
quorumlog group reset-offsets --all-groups --all-topics --by-duration PT1H --export > offsets.csv
quorumlog transaction list --state ongoing --duration-filter 60000       # open for over a minute
quorumlog transaction describe billing-1
quorumlog transaction describe-producers --topic orders --partition 0
quorumlog transaction abort --transactional-id billing-1
quorumlog transaction abort --topic orders --partition 0 --start-offset 4711           # of what find-hanging shows
quorumlog transaction find-hanging --broker-id 1
quorumlog transaction find-hanging --topic orders
quorumlog spark doctor
quorumlog spark doctor --no-round-trip              # writes nothing
quorumlog spark shell
quorumlog spark shell --master spark://HOST:7077 --conf spark.executor.memory=2g
quorumlog spark shell -o json                       # what it would start
quorumlog spark load orders --to lake --partition-by 'date(timestamp)'
quorumlog spark load orders refunds --to lake --every 15m -o json
quorumlog spark load orders --to lake --from 2026-11-20T08:00:00Z --until 2026-11-21       # into the same files
quorumlog spark load orders --to s3://lake/orders --table delta
quorumlog spark load orders --to s3://lake/orders --table iceberg --from 2026-11-20        # replaces rows by offset
quorumlog spark load --to lake --verify
quorumlog spark mirror --from east=host1:9092 --to west=host2:9092 --topics 'orders.*' --checkpoint to-west
quorumlog spark mirror --from west=host2:9092 --to east=host1:9092 --topics 'orders.*' --checkpoint home  # and back
quorumlog spark mirror --from east --to west --topics orders --names same --checkpoint m --once  # of two profiles
quorumlog spark pin list
quorumlog spark sink list
quorumlog spark sink list --open -o json         # which partitions' readers wait, and for how long
quorumlog spark sink abort spark/8a7c3f0e-6d8e-4f0a-9d2b-0b7c5f1e2a33
quorumlog spark sink forget write/nightly        # a later write of this id begins anew
quorumlog spark pin delete hourly-counts                 # its next query without a checkpoint begins anew

quorumlog explain                                # all that is wrong
quorumlog explain partition orders-4
quorumlog explain broker 3 -o json               # with the source of each sentence
quorumlog check                                  # exit code 0 fine, 1 warning, 2 critical, 3 unknown
quorumlog check disk --free-percent 10
quorumlog check --format prometheus > quorumlog.prom
quorumlog diagnose --since 1h
quorumlog diagnose --all --to bundle.tar.zst
quorumlog generate grafana --to dashboards
quorumlog generate grafana groups > groups.json
quorumlog generate alerts > quorumlog-alerts.yml
quorumlog generate alerts --prometheus --to monitoring   # and prometheus.yml, which scrapes the nodes
quorumlog quorum status
quorumlog quorum status --watch
quorumlog quorum history
quorumlog quorum history --from node1/meta       # of a node that does not run
quorumlog quorum verify
quorumlog quorum replication
quorumlog quorum add-controller -c node3/server.properties -b host1:9092
quorumlog quorum remove-controller --node-id 3 -b host1:9092
quorumlog quorum transfer-leadership --to 2
quorumlog quorum wait-healthy --timeout 60
quorumlog broker list
quorumlog broker describe 4
quorumlog broker drain 4 --dry-run
quorumlog broker drain 4 --wait --throttle 50000000
quorumlog broker unregister 4 --dry-run
quorumlog broker unregister 4 --yes
quorumlog feature describe
quorumlog feature upgrade --latest --dry-run
quorumlog feature upgrade kraft.version=1
quorumlog feature downgrade metadata.version=6 --dry-run
quorumlog feature version-mapping --release-version 3
quorumlog feature dependencies --feature joint.version=2 --feature group.version=1
quorumlog acl create topic:orders --allow User:alice --operation read --wait
quorumlog acl create topic:orders group:billing --allow User:alice --consumer
quorumlog acl create topic:eu- --prefixed --allow User:bob --producer
quorumlog acl create topic:orders --deny User:mallory -O all --host 10.0.0.7
quorumlog acl list
quorumlog acl list topic:orders --match                  # also prefixes, and rules of any topic
quorumlog acl test User:alice read topic:orders          # and which rule decides
quorumlog acl delete topic:orders --allow User:alice --dry-run
quorumlog acl export acls.json
quorumlog acl apply acls.json --prune --dry-run
quorumlog partition list
quorumlog partition list orders --state under-replicated
quorumlog partition apply plan.json --throttle 50000000 --rollback rollback.json --wait
quorumlog partition move orders-3 --to 1,2,4 --wait
quorumlog partition drain 4 --directory /disk2/data --wait
quorumlog partition status
quorumlog partition status --plan plan.json --wait --finish
quorumlog partition cancel orders-3
quorumlog partition cancel --all --dry-run
quorumlog partition elect-leader --all           # the preferred replicas
quorumlog partition elect-leader orders-3 --unclean      # records may be lost
quorumlog partition plan balance --out plan.json
quorumlog partition plan balance --by leaders --max-bytes 10000000000
quorumlog partition plan add-broker 4 --out plan.json
quorumlog partition plan drain 4 --out plan.json
quorumlog partition plan move orders --to 1,2,3 --out plan.json
quorumlog log-dirs list
quorumlog log-dirs list --node 2 -o json
quorumlog log-dirs move orders-3 /disk2/data --node 1
quorumlog log-dirs cancel orders-3
quorumlog log-dirs online /disk2/data --node 2
quorumlog config get orders
quorumlog config get 1 log.retention.ms --entity-type broker
quorumlog config set orders retention.ms=86400000 cleanup.policy+=compact
quorumlog config set billing consumer.session.timeout.ms=50000 --entity-type group
quorumlog config unset orders retention.ms
quorumlog user create ada                                # asks for the password
quorumlog user create ada -m SCRAM-SHA-256 -m SCRAM-SHA-512 --password env:ADA
quorumlog user list
quorumlog user passwd ada --password-file ada.password
quorumlog user delete ada --yes
quorumlog quota set --user ada producer_byte_rate=1048576 consumer_byte_rate=4194304
quorumlog quota set --default client-id request_percentage=50
quorumlog quota set --user ada --default client-id controller_mutation_rate=10 --dry-run
quorumlog quota list
quorumlog quota list --user ada --strict -o json
quorumlog quota top
quorumlog quota delete --user ada producer_byte_rate
quorumlog quota delete --ip 10.0.0.7 --all
quorumlog metadata dump
quorumlog metadata dump --image --from node1/meta
quorumlog metadata snapshot list node1/meta
quorumlog metadata snapshot verify -c node1/server.properties

quorumlog log dump --print-data-log data/orders-0/00000000000000000000.log
quorumlog log dump data/orders-0 --max-bytes 65536 --key-decoder long --value-decoder string
quorumlog log verify node1/data                  # of a node that is stopped
quorumlog log verify node1/data node2/data --replicas
quorumlog log segments data/orders-0
quorumlog log index data/orders-0 --faults-only
quorumlog log hexdump data/orders-0/00000000000000000000.log --offset 1000
quorumlog log grep data/orders-0 --value alice -i
quorumlog log grep data --key 'user-7.*' --count
quorumlog log explain-compaction orders-0
quorumlog log import kafka-logs/orders-0 kafka-logs/orders-1 --topic orders -r 3
quorumlog log import --activate --topic orders
quorumlog log export --topic orders -p 0 --out exported
quorumlog storage random-uuid
quorumlog storage format -c server.properties --standalone                # a cluster of one node
quorumlog storage format -c server.properties -s --add-scram 'SCRAM-SHA-512=[name=admin,password=@admin.password]'
quorumlog storage format -c server.properties -t "$ID" --secret-file cluster.secret -N    # joins a cluster
quorumlog storage info -c server.properties
quorumlog storage recover -c node1/server.properties --other node3/meta             # only says what it would do
quorumlog storage recover -c node1/server.properties --other node3/meta --unsafe
quorumlog storage adopt -c server.properties --cluster-incarnation "1.$ID" --end-offset 4711 --last-epoch 9
quorumlog storage renew-quorum-state -c server.properties --epoch 10
quorumlog storage accept-metadata-loss -c server.properties --unsafe
quorumlog storage refetch-metadata -c server.properties
quorumlog server start -c server.properties
quorumlog server start -c server.properties -X log.format=json
quorumlog server config lint -c server.properties
quorumlog server config show -c server.properties
quorumlog server config explain log.retention.hours
quorumlog tls init certs --node 1=host1.example,10.0.0.1 --node 2=host2.example --client ada
quorumlog tls init certs --client bob            # later, by the same authority
quorumlog tls renew certs                        # all nodes and clients, with new keys
quorumlog tls renew certs node-1 --days 30
quorumlog tls renew certs --authority            # one of three steps; it says what to do before the next
quorumlog tls show certs
quorumlog tls show host1.pem -o json             # with fingerprints
quorumlog tls verify certs
quorumlog tls import keystore.p12 --password env:KEYSTORE_PASSWORD
quorumlog tls revoke certs ada

quorumlog profile list
quorumlog profile show
quorumlog profile use local
quorumlog profile create staging -b host1:9092,host2:9092
quorumlog profile delete staging
quorumlog completion bash > ~/.local/share/bash-completion/completions/quorumlog
quorumlog schema                                 # which commands print JSON
quorumlog schema group lag                       # the form of what -o json prints
quorumlog docs                                   # which pages there are
quorumlog docs operations
quorumlog docs --find 'unclean election'
quorumlog version
"""
LINES = tuple(line for line in _TEXT.splitlines() if line)

HELP_WIDTH = 78  # of 80 columns, rich keeps one at each side
GAP = len("  # ")


def show_in_help(command: Any, path: tuple[str, ...]) -> None:
    """Let a command, or each command of a group, show its examples. path: the words that call it."""
    for name, child in getattr(command, "commands", {}).items():
        show_in_help(child, (*path, name))
    if found := [line for line in LINES if _call(line)[: len(path)] == path and not hasattr(command, "commands")]:
        shown = [line.replace("[", r"\[") for line in _beside(found)]  # in brackets it would be a style of rich's
        command.epilog = "\n\n".join(["Examples:" if len(found) > 1 else "Example:", *shown])


def _beside(lines: list[str]) -> list[str]:
    """Lines with their comments in one column, or right behind the command where the line would be broken."""
    calls = [line.partition(" # ") for line in lines]
    column = max(len(call.rstrip()) for call, _, _ in calls)
    if any(comment and column + len(comment) + GAP > HELP_WIDTH for _, _, comment in calls):
        column = 0
    return [f"{call.rstrip():<{column}}  # {comment}" if comment else call for call, _, comment in calls]


def _call(line: str) -> tuple[str, ...]:
    """The words behind `quorumlog`."""
    return tuple(line.partition("quorumlog ")[2].split())
