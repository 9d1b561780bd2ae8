"""Benchmarks: ratios within one run, in interleaved rounds, against a floor and against peers. Never a timed test."""
