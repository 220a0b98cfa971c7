"""Quotas of clients: what each user and client id may take of a broker (KIP-13, KIP-124, KIP-599)."""
