"""The embedded engine: segment files of record batches in one locked directory."""
