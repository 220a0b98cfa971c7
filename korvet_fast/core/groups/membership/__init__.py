"""What members ask of the coordinator: one service for each protocol that a group can be of."""
