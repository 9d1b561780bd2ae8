"""What `quorumlog bench` measures with: latencies in buckets, schedules, workers, reports."""
