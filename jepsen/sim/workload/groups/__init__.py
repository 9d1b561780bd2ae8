"""Consumer groups: members of both protocols, and committers that belong to none."""
