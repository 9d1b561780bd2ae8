"""What three nodes do: rates, latency, fail-over, rest, and the longest turns of their loops."""
