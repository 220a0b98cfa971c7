"""Groups of the consumer protocol (KIP-848): members only send heartbeats, and the broker assigns."""
