"""Why something in a cluster is as it is: facts in, findings out. Begin with `judging.py`.

    facts = read_facts(admin, ...)                  # reading.py: by the client's calls
    findings = judge(facts, Thresholds())           # causes/: a table; each finding has its evidence
    explanation = explain(subject, facts, findings)

`quorumlog explain` and `quorumlog check` are two faces of one judgement. Only `reading.py` does I/O.
"""
