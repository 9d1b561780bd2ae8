"""Which command prints which document with `-o json`. A test holds that every command is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from quorumlog_cli.documents import (
    access,
    brokers,
    cluster,
    common,
    explaining,
    groups,
    log_files,
    nodes,
    partitions,
    records,
    spark_jobs,
    tls_files,
)
from quorumlog_cli.documents.schema import schema_of

ON_LINES = "one such document on each line"
EITHER = "with an option by which it is repeated, one such document on each line"
FAILURE = "error"  # what every command may print on stderr


class Prints(NamedTuple):
    """document: the one that is printed. line: one on each line, as many as there are. Some commands do either."""

    document: Any = None
    line: Any = None

    def schema(self) -> dict[str, Any]:
        """Of each document that the command prints."""
        if self.line is None:
            return schema_of(self.document)
        if self.document is None:
            return schema_of(Annotated[self.line, ON_LINES])
        if self.document is self.line:
            return schema_of(Annotated[self.line, EITHER])
        return schema_of(self.document | Annotated[self.line, ON_LINES])


def lines(kind: Any) -> Prints:
    return Prints(line=kind)


INDEX_ENTRY = log_files.OffsetEntry | log_files.TimeEntry | log_files.TransactionEntry
FILE_INDEX_ENTRY = log_files.FileOffsetEntry | log_files.FileTimeEntry | log_files.FileTransactionEntry
DUMPED = (
    log_files.BatchLine | log_files.RecordLine | log_files.MeaningLine | log_files.ProducerLine | log_files.TextLine
)
MIRRORED = spark_jobs.MirrorBatch | spark_jobs.MirrorGroups | spark_jobs.MirrorWarning

DOCUMENTS: Mapping[str, Prints] = {
    "up": Prints(nodes.Up),
    "status": Prints(nodes.Status),
    "logs": lines(nodes.LogLine),
    "kill": Prints(nodes.Killed),
    "pause": Prints(nodes.Paused),
    "resume": Prints(nodes.Resumed),
    "restart": Prints(nodes.Restarted),
    "roll": Prints(nodes.RollPlan | nodes.Rolled),
    "console": Prints(nodes.Address),
    "net cut": Prints(nodes.Links),
    "net heal": Prints(nodes.Links),
    "net status": Prints(nodes.Links),
    "down": Prints(nodes.Down),
    "purge": Prints(nodes.Purged),
    "topic create": Prints(records.TopicCreated | list[records.TopicOfFile]),
    "topic list": Prints(list[records.TopicRow]),
    "topic describe": Prints(records.Topic | list[records.Topic]),
    "topic delete": Prints(records.TopicsDeleted),
    "topic alter": Prints(records.TopicAltered),
    "topic truncate": Prints(list[records.Truncated]),
    "topic offsets": Prints(list[records.PartitionOffsets]),
    "produce": Prints(records.Produced),
    "consume": lines(records.Consumed),
    "bench produce": Prints(cluster.Bench),
    "bench consume": Prints(cluster.Bench),
    "bench e2e": Prints(cluster.Bench),
    "bench compare": Prints(cluster.Compared),
    "group list": Prints(list[groups.GroupListed]),
    "group describe": Prints(list[groups.GroupOffset] | list[groups.GroupMember] | list[groups.GroupState]),
    "group delete": Prints(list[groups.GroupDeleted]),
    "group delete-offsets": Prints(list[groups.OffsetsDeleted]),
    "group lag": Prints(groups.GroupLag, line=groups.GroupLag),
    "group reset-offsets": Prints(list[groups.OffsetReset]),
    "transaction list": Prints(list[groups.TransactionListed]),
    "transaction describe": Prints(groups.Transaction),
    "transaction describe-producers": Prints(list[groups.PartitionProducer]),
    "transaction abort": Prints(groups.Aborted | groups.Fenced),
    "transaction find-hanging": Prints(list[groups.Hanging]),
    "spark doctor": Prints(list[spark_jobs.Diagnosis]),
    "spark shell": Prints(spark_jobs.SparkShell),
    "spark load": Prints(spark_jobs.Loads | spark_jobs.LoadVerified, line=spark_jobs.Loads),
    "spark mirror": lines(MIRRORED),
    "spark pin list": Prints(list[spark_jobs.Pin]),
    "spark pin delete": Prints(spark_jobs.Deleted),
    "spark sink list": Prints(list[spark_jobs.SinkGroup] | list[spark_jobs.OpenChild]),
    "spark sink abort": Prints(spark_jobs.SinkAborted),
    "spark sink forget": Prints(spark_jobs.SinkForgotten),
    "top": Prints(cluster.Top),
    "quorum history": Prints(cluster.History),
    "quorum verify": Prints(cluster.Verified),
    "quorum add-controller": Prints(cluster.Voters),
    "quorum remove-controller": Prints(cluster.Voters),
    "quorum replication": Prints(cluster.Replication),
    "quorum status": Prints(cluster.QuorumStatus),
    "quorum transfer-leadership": Prints(cluster.LeaderNow),
    "quorum wait-healthy": Prints(cluster.QuorumStatus),
    "broker unregister": Prints(brokers.Unregistered),
    "broker drain": Prints(partitions.CarriedOut),
    "broker list": Prints(list[brokers.Broker]),
    "broker describe": Prints(brokers.Broker),
    "feature describe": Prints(brokers.Features),
    "feature upgrade": Prints(brokers.FeatureChanges),
    "feature downgrade": Prints(brokers.FeatureChanges),
    "feature version-mapping": Prints(brokers.MappedLevels),
    "feature dependencies": Prints(brokers.Dependencies),
    "partition apply": Prints(partitions.CarriedOut),
    "partition move": Prints(partitions.CarriedOut),
    "partition drain": Prints(partitions.CarriedOut),
    "partition status": Prints(partitions.MovesStatus),
    "partition cancel": Prints(partitions.MovesCancelled),
    "partition list": Prints(list[partitions.PartitionRow]),
    "partition elect-leader": Prints(partitions.Elected | partitions.WouldElect),
    "partition plan balance": Prints(partitions.Plan),
    "partition plan add-broker": Prints(partitions.Plan),
    "partition plan drain": Prints(partitions.Plan),
    "partition plan move": Prints(partitions.Plan),
    "log-dirs move": Prints(brokers.ReplicaMove),
    "log-dirs cancel": Prints(brokers.ReplicaMove),
    "log-dirs list": Prints(list[brokers.LogDirectory]),
    "log-dirs online": Prints(brokers.DirectoryOnline),
    "config get": Prints(list[cluster.Config]),
    "config set": Prints(cluster.ConfigChanged),
    "config unset": Prints(cluster.ConfigChanged),
    "acl test": Prints(access.Verdict),
    "acl export": Prints(access.ExportedRules | access.RuleFile),
    "acl apply": Prints(access.RulePlan),
    "acl create": Prints(list[access.Rule]),
    "acl list": Prints(list[access.Rule]),
    "acl delete": Prints(list[access.Rule]),
    "user create": Prints(access.CredentialsSet),
    "user list": Prints(access.Credentials),
    "user passwd": Prints(access.CredentialsSet),
    "user delete": Prints(access.CredentialsDeleted),
    "quota set": Prints(access.QuotasSet),
    "quota list": Prints(access.Quotas),
    "quota top": Prints(access.QuotaUses),
    "quota delete": Prints(access.QuotasRemoved),
    "metadata dump": Prints(cluster.MetadataImage, line=cluster.MetadataRecord),
    "metadata snapshot list": Prints(cluster.Snapshots),
    "metadata snapshot verify": Prints(cluster.Snapshots),
    "explain": Prints(explaining.Explanation),
    "check": Prints(explaining.Checked),
    "diagnose": Prints(explaining.Diagnosed),
    "generate grafana": Prints(explaining.Dashboard | explaining.Written),
    "generate alerts": Prints(list[explaining.AlertRule] | explaining.Scraping | explaining.Written),
    "backup create": Prints(cluster.Backup),
    "backup verify": Prints(cluster.BackupVerified),
    "backup show": Prints(cluster.Backup),
    "restore local": Prints(cluster.Restored),
    "restore node": Prints(cluster.Restored),
    "restore release": Prints(cluster.Released),
    "log dump": lines(DUMPED | INDEX_ENTRY),
    "log verify": Prints(log_files.FilesVerified | log_files.DirectoriesVerified),
    "log segments": Prints(list[log_files.Segment]),
    "log index": lines(FILE_INDEX_ENTRY),
    "log hexdump": lines(log_files.HexField | log_files.HexDamage),
    "log grep": Prints(log_files.Matches, line=log_files.FileRecordLine),
    "log explain-compaction": Prints(list[log_files.Compaction]),
    "log import": Prints(log_files.Imported | log_files.Activated),
    "log export": Prints(log_files.Exported),
    "storage recover": Prints(nodes.Recovered),
    "storage adopt": Prints(nodes.Adopted),
    "storage format": Prints(nodes.Formatted),
    "storage random-uuid": Prints(nodes.MadeId),
    "storage info": Prints(nodes.StorageInfo),
    "storage renew-quorum-state": Prints(nodes.RenewedState),
    "storage accept-metadata-loss": Prints(nodes.AcceptedLoss),
    "storage refetch-metadata": Prints(nodes.Refetched),
    "server config lint": Prints(nodes.Linted),
    "server config show": Prints(dict[str, nodes.Setting]),
    "server config explain": Prints(nodes.ExplainedSetting),
    "server start": lines(nodes.NodeLine),
    "tls init": Prints(tls_files.CertificatesIssued),
    "tls renew": Prints(tls_files.CertificatesRenewed),
    "tls show": Prints(tls_files.CertificatesShown),
    "tls verify": Prints(tls_files.CertificatesTried),
    "tls import": Prints(tls_files.KeystoreImported),
    "tls revoke": Prints(tls_files.Revoked),
    "profile list": Prints(list[nodes.ProfileRow]),
    "profile show": Prints(nodes.ShownProfile),
    "profile use": Prints(nodes.ProfileUsed),
    "profile create": Prints(nodes.ProfileCreated),
    "profile delete": Prints(nodes.ProfileDeleted),
    "completion": Prints(nodes.CompletionScript),
    "schema": Prints(nodes.DescribedCommands | nodes.JsonSchema),
    "docs": Prints(nodes.Pages | nodes.PageText | nodes.FoundLines | nodes.Site),
    "version": Prints(nodes.Versions),
    FAILURE: Prints(common.Failure),
}
