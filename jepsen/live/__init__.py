"""A live run: real node processes, librdkafka's clients, real faults, and a verdict with a report.

The simulation replaces the edges of a node. Here nothing is replaced: the nodes run the production command on the
machine's file systems and sockets. The files in the data's way:

    plan.py                which faults strike, in which order: drawn from a seed
    expectations.py        how long acknowledgements may pause for each kind of fault
    nodes.py, guard.py     the processes and their directories; their end if the run itself is killed
    strace.py, volume.py, edge_control.py, struck_disk.py, ways.py     how a disk is made to fail, hang or fill up
    blows.py, striker.py   one fault on one node; a whole strike, from the healthy cluster to the healthy cluster
    values.py, ledger.py   what is sent, and what each producer was told, in arrays
    clients.py, readers.py producers and consumers, all of them librdkafka
    replicas.py            the logs as they lie on disk after the last stop, read by our own code
    checks.py, pauses.py, minimums.py    the verdict
    steps.py, scenarios/   fixed sequences of strikes at clusters of their own shape: `--scenario`
    report.py, chart.py, page.py         the report
    run.py, command.py     everything together, and the command line
"""
