"""A cluster whose majority is lost, recovered under a new incarnation, and met by its old machines."""
