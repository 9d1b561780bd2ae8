"""A live run: real node processes, librdkafka's clients, real faults, and a verdict with a report.

The simulation replaces the edges of a node. Here nothing is replaced: the nodes run the production command on the
machine's file systems and sockets. The files in the data's way:

    plan.py                what strikes, and in which order: drawn from a seed
    expectations.py        how long acknowledgements may pause for each kind of fault
    cluster/, guard.py     the processes and their directories, a proxy between them; their end if the run is killed
    disks/                 how a disk is made to fail, hang or fill up
    blows.py, striker.py   one fault on one node; a whole strike, from the healthy cluster to the healthy cluster
    clients.py             producers, all of them librdkafka
    evidence/              what they sent and were told, what consumers read, what lies on the disks, and what must hold
    minimums.py            how much a run must exercise to count
    scenarios/             fixed sequences of strikes at clusters of their own shape: `--scenario`
    report/                the report: facts, a page, a chart
    run.py, command.py     everything together, and the command line
"""
