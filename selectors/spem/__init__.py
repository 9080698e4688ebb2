"""SPEM (arXiv 2610.26995)."""
