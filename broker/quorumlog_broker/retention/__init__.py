"""When logs are looked at for records that their topics' policies let go, and in which steps.

`schedule.py` and `passes.py` decide, without a clock and without a loop; `retention.py` performs. What a policy lets go
is `quorumlog_storage/retention/policy.py`.
"""
