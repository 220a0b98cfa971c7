"""The requests of group members: one service for each group protocol."""
