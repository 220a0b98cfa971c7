"""Groups of the classic protocol: members join and sync, and one of them assigns the partitions."""
