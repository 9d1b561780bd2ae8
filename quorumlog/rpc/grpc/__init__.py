"""gRPC as a `transport.Transport`. Only this package imports it."""
