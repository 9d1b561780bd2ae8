"""Transactional clients, and drivers of joint transactions."""
