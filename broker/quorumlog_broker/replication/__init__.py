"""Followers that fetch from leaders, and leaders that change their ISR.

`fetcher.py` is the fetch loop for one leader and one log directory, `follower.py` applies a response to the log,
`alter_partition_manager.py` sends proposed ISRs to the controller, `isr_expiration.py` looks for followers that fell
behind. The room may use `replicas` and below, the session epochs of `fetch`, and the controller's channel. Begin with
`fetcher.py`.
"""
