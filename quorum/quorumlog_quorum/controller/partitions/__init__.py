"""One partition: where its replicas lie, who leads it, and how that changes. Pure."""
