"""Commands for Spark: checks, a shell, loads, mirrors and sinks."""
