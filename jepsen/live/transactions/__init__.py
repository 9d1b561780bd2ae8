"""`./dev transactions`: the transactional list-append workload over real processes that are killed."""
