"""The parts of the tests: `quick`, which `./dev test` runs, `rest`, what it leaves out, and `nightly`.

The environment variable QUORUMLOG_TESTS names the part that pytest runs; without it pytest runs everything. `all` is
quick and rest.

- Folders of `WHOLE_ONLY` are in the rest; the cases of `ALSO_QUICK` are in both parts.
- Of all other folders every test function is quick, but for those of `LEFT_OUT`. Quick is a tenth of its seeds (the
  parameters of `SEEDS`), of the parameters of a function of `SAMPLED`, of the examples of a property, and of whatever
  else a test counts with `few`. Seeds and parameters that are left out are in the rest. A property is in both parts,
  with a fifth of its examples in the rest, and whole in the night; so is a function marked with `counts`.
- What finds least for its time is in `NIGHTLY` (or in a table of `SAMPLED` that says so), and in neither of the two:
  `./dev nightly` runs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby
from typing import Protocol

SHARE = 10  # quick is one of so many
SHARE_OF_REST = 5  # and of examples the rest one of so many; the night runs them all


class Part(StrEnum):
    QUICK = "quick"
    REST = "rest"
    ALL = "all"
    NIGHTLY = "nightly"
    EVERYTHING = "everything"


PART = "QUORUMLOG_TESTS"  # environment variable
TOLD = "QUORUMLOG_LEFT_OUT"  # environment variable: a file, which takes the number of tests that were left out
PROCESSOR = ".processor"  # ends the name of the file beside it that takes the seconds of processor, all processes' sum
CHOSEN = Part(os.environ.get(PART, Part.EVERYTHING))

# Real nodes, clients and applications, long simulations, and environments that are made for a test.
WHOLE_ONLY = ("applications", "clients", "crash", "faults", "install", "live", "sim", "soak", "spark")
SEEDS = ("seed", "block")

_KAFKA = "it starts Apache Kafka, which Maven fetches"
_NODES = "it runs real nodes, as the folder live does"
_SCALE = "it looks at thousands of members, partitions or days"
_SIMULATES = "it is a simulation, or tries what finds mistakes in one, for a quarter of a minute or more"
LEFT_OUT: dict[str, str] = {  # test functions, by what their names begin with, and why the quick part has none of it
    "tests/broker/coordinator/test_group_scale.py": _SCALE,
    "tests/formats/test_export.py::test_the_directory_is_whole": _NODES,
    "tests/formats/test_golden_directories.py::test_a_node_serves": _NODES,
    "tests/formats/test_import_interrupted.py": _NODES,
    "tests/formats/test_import_page.py": _NODES,
    "tests/formats/test_kafka_dump.py": _KAFKA,
    "tests/jepsen/test_mutants.py::test_a_sample_is_killed": "mutants are for whoever changes what finds them",
    "tests/jepsen/test_nightly_processes.py": "it starts and ends nights, for whoever changes them",
    "tests/jepsen/test_pool.py::test_a_child_gives_the_result": _SIMULATES,
    "tests/jepsen/test_shrink.py::test_a_mistake_of": _SIMULATES,
    "tests/jepsen/test_shrink.py::test_strikes_that_are_taken_out": _SIMULATES,
    "tests/lint/test_suites.py": "it starts pytest again and again, for whoever changes the runner",
    "tests/lint/test_tidy.py::test_tidy": "`./dev check` runs it",
    "tests/packages/test_image_files.py::test_setup_makes": "it runs commands, each in a process of its own",
    "tests/monitoring/test_promtool.py::test_each_rule_fires": "it plays hours of 36 clusters to Prometheus, for 8 s",
    "tests/quorum/controller/test_unclean_recovery.py::test_many_partitions": _SCALE,
    "tests/records/test_compiled_code.py": "it compiles again and again, in processes of its own",
    "tests/security/client/test_secure_kafka.py": _KAFKA,
    "tests/security/serving/test_hostile_live.py": _NODES,
    "tests/security/serving/test_token_logins_live.py": _NODES,
    "tests/security/tls/test_tls_folder_live.py": _NODES,
    "tests/storage/test_open_files.py::test_3000": _SCALE,
}
SAMPLED: dict[str, bool] = {  # functions with tables of cases; whether nine tenths are nightly, not in the rest
    "tests/broker/moves/test_moves_of_replicas.py::test_a_move_goes_on_after_a_restart": False,
    "tests/client/test_consumer_membership.py::test_members_find_together_after_any_faults": True,
    "tests/client/test_membership.py::test_members_find_together_after_any_faults": True,
    "tests/formats/test_import.py::test_every_topic_is_read_as_kafka_s_consumer_read_it": False,
    "tests/jepsen/test_deposed_controller.py::test_it_answers_only_that_it_does_not_know": False,
    "tests/proto/test_generated_messages.py::test_damaged_bytes_are_a_message_or_a_decode_error": True,
    "tests/proto/test_generated_messages.py::test_round_trip": True,
    "tests/storage/test_compaction_crashes.py::test_a_second_stop_while_the_first_is_recovered_from": True,
    "tests/storage/test_compaction_crashes.py::test_a_stop_at_any_call": True,
    "tests/storage/test_damaged_indexes.py::test_a_flipped_byte_anywhere_changes_no_answer_and_is_mended": True,
    "tests/storage/test_partition_crashes.py::test_a_second_stop_while_the_first_is_recovered_from": True,
    "tests/storage/test_partition_crashes.py::test_a_stop_at_any_call": True,
    "tests/wire/test_wire_schema.py::test_bytes_are_those_of_kio_and_can_be_read_again": False,
    "tests/wire/test_wire_schema.py::test_every_truncation_is_malformed_or_shorter": False,
}

_SEEDS = "the simulation plays it with more seeds"
_ON_KAFKA = "tests/spark/decisions/test_decisions_on_kafka.py"
_DECISIONS = (
    "abort_closes_what_a_batch_has_open",
    "abort_while_commit_runs",
    "a_second_start_ends_the_first",
    "a_single_batch_leaves_no_record_and_a_group_can_be_forgotten",
    "a_tasks_failure_aborts_its_transaction",
    "a_topic_that_may_lose_decisions_is_refused",
    "batches_are_there_once",
    "children_whose_time_is_over",
    "how_a_transaction_has_ended_is_read_from_the_log",
    "many_tasks",
    "the_brokers_limit_and_a_time_that_is_too_short",
)
_RENEWED = "tests/security/client/test_secure_kafka.py::test_a_login_is_renewed_while_nobody_polls"
_LOST = "tests/sim/test_lost_majority.py::test_the_old_majority_is_refused_and_nothing_new_is_lost"
_DEATH = "test_load_protocol.py dies between any two steps, and three of these deaths are in the rest"
_SCENARIO = "`./dev nightly` runs all scenarios of `./dev live`"
_KEYS = "tests/library/test_topic_config.py takes each key of Kafka's"
_PLAN = "test_streaming.py plans any batches and restarts without Spark"
_NEAR = "its other cases read by librdkafka and by the lane, and ask the same brokers for the same"
_OTHER_TOOL = "other tools of Kafka and the clients' cells ask the same calls"
_APPLICATION = "the other applications run as groups, too"
_RUNNER = "whoever changes the runner of tests runs it"
_TABLES_TOO = "test_decision_tables.py tries every order of their steps"
_INTEROP = "what is written is compared with Kafka's bytes, and Kafka's dump tool reads it"
NIGHTLY: dict[str, str] = {  # tests, by what their names begin with, and where else what they look for is looked for
    "tests/live/test_every_document.py::test_every_document": "tests/conftest.py checks what each test prints as JSON",
    "tests/console/test_console_browser.py::test_every_page": "test_in_a_browser looks at four pages in one look",
    "tests/console/test_console_browser.py::test_a_page_loads": "test_console_pages.py opens each page anew",
    "tests/console/test_console_browser.py::test_a_person": "test_console_login.py logs in without a browser",
    "tests/console/test_console_messages_browser.py::test_a_burst": "test_console_messages.py tails without a browser",
    "tests/console/test_console_messages_browser.py::test_every_page": "test_digits looks at two pages in one look",
    "tests/console/test_console_messages_kafka.py": "test_console_messages.py looks before one of our nodes",
    "tests/console/test_console_kafka.py": "test_console_pages.py opens each page before one of our nodes",
    "tests/live/test_tutorial_page.py::test_every_block": "test_readme.py and test_guide_pages.py run such commands",
    "tests/library/test_site.py": "test_links_of_pages.py looks for each file and heading in the pages themselves",
    "tests/live/test_operators_page.py": "test_tls_and_users_page.py starts nodes so, others the verbs one by one",
    "tests/live/test_operations_page.py::test_a_directory_comes": "test_removed_directory_live.py brings one back",
    "tests/live/test_demo_second_act.py::test_a_group_that": "`./dev demo`, which CI runs, plays the act",
    "tests/live/test_consumer_groups_live.py::test_members_change": "test_consumer_migration.py, on virtual time",
    "tests/spark/test_spark_guide.py": "test_spark_streams.py and test_spark_once.py read and write so",
    "tests/spark/test_spark_kafka.py::test_a_stream_with_a_pin": "test_spark_streams.py pins before our own nodes",
    "tests/live/test_drill_live.py": "test_explain_live.py kills a node, and test_drill_sights.py judges looks",
    "tests/monitoring/test_prometheus_live.py": "test_promtool.py plays a fault to each rule",
    "tests/watch/test_top_on_kafka.py": "test_local_cluster.py asks our nodes the same by the same calls",
    "tests/packages/test_debian_root.py": "test_image_files.py reads what the image is made of",
    "tests/packages/test_software.py::test_the_bill_is_one": "test_the_bill_names_each_package looks at its parts",
    "tests/live/test_roll_upgrade.py": "test_roll_live.py rolls, and test_upgrade_live.py upgrades node by node",
    "tests/schemas/test_karapace.py": "test_clients_on_a_node.py writes and reads with a registry of the tests' own",
    "tests/live/test_roll_kafka.py": "test_roll_steps.py has no epochs and no offsets; test_roll_turns.py no marks",
    "tests/live/test_roll_controllers.py": "test_roll_steps.py has controllers alone, test_roll_live.py rolls",
    "tests/live/test_roll_page.py": "test_roll_live.py runs roll with and without a command",
    "tests/live/test_faults_marker.py": "test_faults_plugin.py and test_local_cluster.py",
    "tests/clients/test_kcat_formats.py": "test_records_text.py has each letter, with what kcat prints",
    "tests/security/quota/test_mutations_on_kafka.py": "test_mutation_quota.py tries each of the three requests",
    "tests/applications/test_smoke.py::test_it_runs_unmodified[bytewax]": _APPLICATION,
    "tests/applications/test_smoke.py::test_it_runs_unmodified[connect]": _APPLICATION,
    "tests/applications/test_smoke.py::test_it_runs_unmodified[group-tools]": _OTHER_TOOL,
    "tests/applications/test_smoke.py::test_it_runs_unmodified[mirror-maker]": _KEYS,
    "tests/clients/test_client_matrix.py::test_tool[kafka-cluster]": _OTHER_TOOL,
    "tests/clients/test_near_consumer.py::test_another_client_reads_from_the_follower[java]": _NEAR,
    "tests/clients/test_near_consumer.py::test_ours_reads_from_the_follower_and_goes_on[grpc]": _NEAR,
    "tests/clients/test_lag_of_what_is_gone.py::test_lag[after a failover]": "test_group_lags.py fails over in-process",
    "tests/clients/test_client_matrix.py::test_tool[kafka-features]": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-get-offsets]": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-leader-election]": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-configs, brokers]": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-configs, loggers]": "test_log_levels.py asks for each answer",
    "tests/clients/test_client_matrix.py::test_tool[kafka-configs, quotas]": "test_quota_handlers.py tries each filter",
    "tests/clients/test_client_matrix.py::test_tool[kafka-console-consumer, `group.protocol": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-console-consumer, subscribed": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-consumer-groups, `group.protocol": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-consumer-perf-test, `group.protocol": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-metadata-quorum, changing voters]": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-reassign-partitions]": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-topics]": _OTHER_TOOL,
    "tests/clients/test_client_matrix.py::test_tool[kafka-transactions]": _OTHER_TOOL,
    "tests/clients/test_protected_cluster.py": "tests/live/test_protected_minutes.py logs in by four other clients",
    "tests/broker/coordinator/joint/test_many_batches.py::test_many_batches_leave_no_more[100000]": "1,500 are quick",
    "tests/crash/test_crash_sweep.py::test_a_mistake_is_found": "`./dev nightly` tries all mutants",
    "tests/faults/test_live_run.py::test_a_scenario_strikes": _SCENARIO,
    "tests/faults/test_live_run.py::test_disks_are_struck_where_neither": "the minute of every fault strikes disks",
    "tests/faults/test_pipeline.py::test_some_cells": "`./dev nightly` plays the whole matrix",
    "tests/faults/test_controller_loop.py": "`./dev nightly` runs the same loop, and for longer",
    "tests/formats/test_consumer_group_log.py::test_both_tools": _INTEROP,
    "tests/formats/test_export.py::test_a_stopped_kafka": _INTEROP,
    "tests/live/test_explained_faults_live.py": "test_causes.py makes each cause, and test_explain_live.py kills",
    "tests/live/test_explain_kafka.py": "test_explaining_commands.py has a cluster without events",
    "tests/live/test_local_cluster.py::test_the_plugins_fixtures_in_an_application[plain]": "test_guide_pages.py too",
    "tests/formats/test_fresh_kafka.py": _INTEROP,
    "tests/formats/test_import_page.py::test_retention_waits": "tests/quorum/controller/test_imports.py has the pause",
    "tests/broker/coordinator/test_group_scale.py::test_a_member_of_the_consumer": "`./dev bench groups` has it",
    "tests/jepsen/test_mutants.py::test_one_of_each_kind": "`./dev nightly` tries all mutants",
    "tests/jepsen/test_nightly_processes.py": "whoever changes the night runs it",
    "tests/jepsen/test_pool.py::test_a_child_gives_the_result": "tests/sim/test_determinism.py compares runs of a seed",
    "tests/jepsen/test_shrink.py::test_strikes_that_are_taken_out": "whoever changes the shrinking runs it",
    "tests/jepsen/test_shrink.py::test_a_mistake_of_a_cluster": "a mistake of a quorum is shrunk in the same way",
    "tests/lint/test_suites.py::test_a_signal_ends": _RUNNER,
    "tests/lint/test_suites.py::test_a_suite_is_stopped": _RUNNER,
    "tests/lint/test_suites.py::test_a_test_that_passes_the_second_time": _RUNNER,
    "tests/lint/test_suites.py::test_lanes_run_side_by_side": _RUNNER,
    "tests/lint/test_suites.py::test_seeds_that_failed": _RUNNER,
    "tests/lint/test_tidy.py::test_tidy": "`./dev check` runs it",
    "tests/live/test_admin_live.py::test_a_quota_slows": "tests/broker/api/test_quotas.py, and `./dev bench quotas`",
    "tests/live/test_consumer_groups_live.py::test_the_partitions_of_a_killed": "others kill members",
    "tests/live/test_demo_second_act.py::test_the_counts": "CI runs the demo",
    "tests/live/test_clients_to_sasl_ssl_live.py": "test_listeners_change.py goes the same way with one node",
    "tests/live/test_demo_third_act.py::test_the_counts": "CI runs the demo",
    "tests/live/test_brokers_page.py": "the simulation replaces brokers, `./dev live` restarts them",
    "tests/clients/secure/test_security_matrix.py::test_every_other_cell": "a sample has each pair of its values",
    "tests/security/required/test_repeated_parts.py": "test_rules_on_a_node.py has the request that ended a node",
    "tests/live/test_compaction_live.py::test_a_throttle_is_taken_away": "tests/broker/cleaning has it, too",
    "tests/live/test_exactly_once_live.py::test_five_kills": "`./dev transactions` kills producers and nodes",
    "tests/live/test_indexes_live.py::test_indexes_that_were_damaged": "tests/storage damages every byte of an index",
    "tests/live/test_indexes_live.py::test_indexes_that_are_damaged": "tests/storage damages every byte of an index",
    "tests/live/test_first_minutes.py::test_the_first_minutes": "test_readme.py runs the README's as they stand",
    "tests/live/test_group_consumer_live.py::test_members_of_the_consumer": "the other one kills them, too",
    "tests/live/test_large_fencing.py": "`./dev bench cluster` fences brokers with more partitions",
    "tests/live/test_lost_quorum_live.py": "tests/cli and tests/sim/test_lost_majority.py lose a quorum",
    "tests/live/test_operations_page.py::test_a_lost_majority": "tests/sim/test_lost_majority.py plays it with seeds",
    "tests/live/test_moved_voters_live.py": "test_operations_page.py moves all controllers at once",
    "tests/live/test_moves_live.py::test_a_move_goes_on_over_a_kill": _SEEDS,
    "tests/live/test_nodes_by_certificates_live.py": "tests/rpc/test_node_security.py takes each stage, there and back",
    "tests/live/test_replace_controller_live.py::test_a_dead": "test_operations_page.py replaces one by its commands",
    "tests/live/test_transactions_live.py::test_a_commit_that_was": "`./dev transactions` kills coordinators",
    "tests/live/test_sick_disks_live.py::test_a_partition_that_its_leader_cannot_read": _SEEDS,
    "tests/live/test_soak_of_processes.py": "`./dev nightly` soaks processes, too, and for longer",
    "tests/live/test_transactional_producer_live.py::test_kills": "`./dev transactions` kills producers and nodes",
    "tests/live/test_transactions_run.py": "`./dev nightly` does a million transactions",
    "tests/live/test_snapshots_live.py::test_nodes_that_were_left_behind": _SEEDS,
    "tests/losses/test_loss_0_earlier_life.py::test_the_logs_of_all_replicas_match_after_the_power_has_gone[6": _SEEDS,
    "tests/losses/test_loss_0_earlier_life.py::test_the_logs_of_all_replicas_match_after_the_power_has_gone[1": _SEEDS,
    "tests/quorum/controller/test_unclean_recovery.py::test_many_partitions": "it looks at 1,500 partitions",
    f"{_RENEWED}[plain": "[token] is it, too",
    f"{_RENEWED}[scram": "[token] is it, too",
    "tests/security/serving/test_hostile_live.py::test_strangers_cost_little[SASL_PLAINTEXT": "TLS costs more",
    **{f"{_LOST}[{seed}": "four seeds are in the rest" for seed in (1, 6, 7, 8, 9)},
    "tests/records/test_compiled_code.py::test_a_damaged_file_is_compiled_anew_once[garble": "the others are truncated",
    "tests/spark/test_spark_secrets.py": "test_secured_tasks.py plans and reads so without a session of Spark",
    "tests/spark/test_secured_mirror.py": "test_secured_tasks.py reads and writes so without a session of Spark",
    "tests/spark/test_spark_cluster.py::test_it_may_be_registered": "`./dev spark-versions` runs it with all versions",
    "tests/spark/test_load_command.py::test_a_load_by_spark": "test_load.py loads by Spark, and the command without it",
    "tests/spark/test_load_kills.py::test_a_killed_job_of_spark": "Spark's jobs and deaths are in the rest",
    "tests/spark/test_load_kills.py::test_a_killed_load_is_done_again[create-1-before]": _DEATH,
    "tests/spark/test_load_kills.py::test_a_killed_load_is_done_again[create-2-before]": _DEATH,
    "tests/spark/test_load_kills.py::test_a_killed_load_is_done_again[put_file-1-before]": _DEATH,
    "tests/spark/test_load_kills.py::test_a_killed_load_is_done_again[put_file-1-after]": _DEATH,
    "tests/spark/test_load_kills.py::test_a_killed_load_is_done_again[put_file-8-after]": _DEATH,
    "tests/spark/test_load_kills.py::test_a_killed_load_is_done_again[sweep-1-before]": _DEATH,
    "tests/spark/test_load_objects.py::test_a_killed_load_is_done_again[strike0]": _DEATH,
    "tests/spark/test_load_objects.py::test_a_killed_load_is_done_again[strike2]": _DEATH,
    "tests/quorum/raft/test_month_at_rest.py": "`./dev soak --cluster` looks at days of a whole cluster",
    "tests/soak/test_cluster_day.py::test_nothing_passes": "`./dev nightly` soaks a cluster, and for longer",
    "tests/soak/test_year.py::test_nothing_grows": "`./dev nightly` soaks log directories, and for longer",
    "tests/spark/test_session_processes.py::test_a_session_leaves": "CI runs the demo, and looks at what it leaves",
    "tests/spark/test_spark_commands.py::test_the_doctor": "tests/spark reads topics in the same way",
    "tests/spark/test_spark_commands.py::test_the_shell": "tests/spark reads topics in the same way",
    "tests/spark/matrix/test_spark_matrix.py": "tests/spark has what it found without Spark's own source",
    "tests/spark/test_spark_kept_connections.py::test_between_two_micro_batches_brokers": "test_after_a_restart is it",
    "tests/spark/decisions/test_decisions_on_kafka.py::test_a_driver_killed": "test_decision_tables.py kills it, too",
    "tests/spark/decisions/test_decisions_on_kafka.py::test_a_task_that_begins_behind_its_drivers": _TABLES_TOO,
    "tests/spark/decisions/test_decisions_on_kafka.py::test_the_command_tells": "tests/cli has it with a fake",
    **{f"{_ON_KAFKA}::test_{name}[3.9.1": "4.3.1 is in the rest" for name in _DECISIONS},
    "tests/spark/test_spark_kafka.py::test_a_stream_is_written_exactly": "test_spark_once.py repeats a batch",
    "tests/spark/test_spark_kafka.py::test_nothing_of_a_batch_that_fails": "test_decision_tables.py has it",
    "tests/spark/decisions/test_decisions_on_three_kafkas.py": "test_decision_machine.py loses the same answers",
    "tests/spark/test_spark_kafka_situations.py": "the tests of the same names try it with a cluster of ours",
    "tests/spark/test_spark_kafka_older.py": "test_spark_kafka.py reads the newest Kafka in the same way",
    "tests/spark/test_spark_places.py": "tests/records/test_compiled_code.py compiles where nothing can be written",
    "tests/spark/test_spark_kills.py": "test_spark_streams.py repeats batches and starts, without a death",
    "tests/spark/test_spark_once.py::test_a_checkpoint_that_was": "test_write_once.py has the same refusals",
    "tests/spark/test_spark_once.py::test_a_copied_and_a_moved": "test_write_once.py has the same refusals",
    "tests/spark/test_spark_once.py::test_a_sink_topic_that_is": "test_write_once.py has both of its batches",
    "tests/spark/test_spark_once.py::test_a_thousand_tasks": "test_write_once.py has batches of more tasks than one",
    "tests/spark/test_spark_once.py::test_two_writes_of": "test_a_batch_that_is_written_again names its batches, too",
    "tests/spark/test_spark_once_kills.py": "tests/faults/test_pipeline.py kills drivers around their decisions",
    "tests/spark/test_spark_standalone.py": "local masters read in processes of their own, too",
    "tests/spark/test_spark_streams.py::test_two_streams": _PLAN,
    "tests/spark/test_spark_streams.py::test_a_stream_that_is_joined": _PLAN,
    "tests/spark/test_spark_writes.py::test_a_batch_with_all_columns[grpc]": "tests/client sends by both transports",
    "tests/spark/test_spark_writes.py::test_a_batch_with_all_columns[lane]": "`auto` sends in the same way",
    "tests/spark/test_spark_writes.py::test_a_partition_that_is_not_there": "tests/spark/test_write_task.py has it",
    "tests/spark/test_spark_writes.py::test_mistakes_are_told": "tests/spark/test_write_task.py has each of them",
    "tests/spark/test_spark_writes.py::test_all_that_a_query_says": "test_a_stream_of_few_rows writes a stream",
    "tests/spark/test_spark_bench.py::test_a_quick_run_of": "tests/bench has what they count and judge",
    "tests/spark/test_mirror_command.py::test_killed": "test_spark_mirror.py starts mirrors again and again",
    "tests/spark/test_spark_mirror.py::test_fail_over_and_back_under_prefixes": "test_mirror_cores.py has circles",
    "tests/spark/test_spark_mirror.py::test_fail_over_and_back_under_the": "test_mirror_translation.py has such pairs",
    "tests/spark/test_spark_mirror.py::test_a_group_whose_records": "test_mirror_translation.py has it",
    "tests/spark/test_mirror_checkpoint.py::test_an_address": "test_a_folder keeps the same",
    "tests/spark/test_spark_mirror_kills.py": "test_mirror_failovers.py plays it with seeds",
    "tests/spark/test_spark_mirror_situations.py": "test_mirror_job.py and test_mirror_lost.py have the cores of them",
    "tests/spark/test_spark_mirror_kafka.py": "test_spark_mirror.py mirrors between two clusters of ours",
    "tests/spark/test_spark_sinks_agree.py::test_the_same_rows_in_the_same_partitions[kafka]": "ours is written to",
    "tests/spark/test_spark_connect.py": "tests/spark reads in the same way, in a classic session",
}
# Of `WHOLE_ONLY` one of each kind. Of the clients one of each family, but for Java's, which Maven has to fetch.
ALSO_QUICK: tuple[str, ...] = (
    "tests/sim/test_some_seeds.py",
    "tests/live/test_three_nodes.py::test_create_produce_fetch_and_lose_the_leader",
    "tests/clients/test_client_matrix.py::test_cell[confluent-kafka-consumer group: subscribe",
    "tests/clients/test_client_matrix.py::test_cell[kafka-python-consumer group: subscribe",
    "tests/clients/test_client_matrix.py::test_cell[aiokafka-consumer group: subscribe",
    "tests/clients/test_client_matrix.py::test_cell[kcat-consumer group: subscribe",
    "tests/spark/test_spark_cluster.py::test_every_record_once_with_all_its_fields",
)


class Item(Protocol):
    """What is read of a test of pytest's. keywords: its markers and the attributes of its function, by name."""

    @property
    def nodeid(self) -> str: ...

    @property
    def keywords(self) -> Iterable[str]: ...


def few(whole: int) -> int:
    """The number of examples, seeds or rounds to run of `whole`: a tenth, rounded up, where only the quick part runs, a
    fifth in the rest.

    A test that calls this in its body is marked with `pytest.mark.counts`; a property needs no mark.
    """
    return -(-whole // {Part.QUICK: SHARE, Part.REST: SHARE_OF_REST}.get(CHOSEN, 1))


def chosen(items: Iterable[Item], part: Part) -> Iterator[bool]:
    """For each test, in its order, whether this part holds it. The parameters of a function stand together."""
    for function, group in groupby(items, _function):
        cases = list(group)
        for number, case in enumerate(cases):
            is_quick = _is_quick(function, case, number, len(cases))
            is_nightly = case.nodeid.startswith(tuple(NIGHTLY)) or (SAMPLED.get(function, False) and not is_quick)
            counts = "is_hypothesis_test" in case.keywords or "counts" in case.keywords
            in_rest = not is_quick or counts or _is_whole_only(function)
            in_parts = {Part.QUICK: is_quick, Part.REST: in_rest, Part.ALL: True, Part.NIGHTLY: counts}
            yield part is Part.EVERYTHING or (part is Part.NIGHTLY if is_nightly else in_parts[part])


def _is_whole_only(function: str) -> bool:
    return function.split("/")[1] in WHOLE_ONLY


def _is_quick(function: str, case: Item, number: int, count: int) -> bool:
    """number: of the case among the `count` cases of its function, from 0."""
    if _is_whole_only(function):
        return case.nodeid.startswith(ALSO_QUICK)
    if function.startswith(tuple(LEFT_OUT)):
        return False
    parameters = getattr(getattr(case, "callspec", None), "params", ())
    if any(name in SEEDS for name in parameters):
        return number < -(-count // SHARE)
    return number % SHARE == 0 if function in SAMPLED else True


def _function(item: Item) -> str:
    return item.nodeid.partition("[")[0]
