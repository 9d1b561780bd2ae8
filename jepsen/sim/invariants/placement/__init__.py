"""What must hold of where replicas lie: brokers, racks, directories, disks, and elections among them."""
