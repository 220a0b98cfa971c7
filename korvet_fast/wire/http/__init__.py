"""HTTP for operators: health, metrics, and a page."""
