"""Exactly-once writes to an Apache Kafka, which has no call that decides a batch (decision 115).

Each attempt of a task has a transaction of its own and leaves it open. The driver writes a decision to a topic, then
ends the transactions that it names. In the order of the protocol: names (transactional ids), decisions (records of the
topic), checks (a batch against the last decision), steps (what the core asks for), ending and core (decide; no I/O),
calls (carries the steps out), runs (what a driver's process keeps), sender (a task's), delivery (what the sink uses),
listing (for people).
"""
