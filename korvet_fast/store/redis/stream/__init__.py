"""The format of records in a stream: entries, ids, the state beside them, and the scripts that change it."""
