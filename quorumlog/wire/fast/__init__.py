"""A fast path straight between bytes and messages: for Produce and Fetch, which are nearly all of the traffic, and for
the calls of groups that all members send at once, or again and again.

It takes a message that is flexible (Produce 9, Fetch 12, JoinGroup 6 and newer) and has no rare field: no unknown tag,
no other leader, no error message of a Produce. Any other message, and any damaged one, raises one of NEEDS_SCHEMA; it
is then read or written again by the schema (wire/format, wire/convert), and only the schema raises Malformed. So these
readers and writers can be fast without being complete; tests compare them with the schema. One call takes 1 to 6 us, by
the schema 8 to 15 (CPython 3.11, two partitions).
"""
