"""HTTP for operators: health and metrics."""
