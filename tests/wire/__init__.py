"""tests.wire"""
