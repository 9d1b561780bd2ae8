"""Beside NATS JetStream: `./dev bench nats`."""
