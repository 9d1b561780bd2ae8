"""What the coordinator knows of transactional ids and of joint commits. Pure."""
