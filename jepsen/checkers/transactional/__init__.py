"""The parts of the checker of transactional histories (jepsen.checkers.transactional_history)."""
