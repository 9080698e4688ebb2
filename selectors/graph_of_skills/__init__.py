"""Graph of Skills (arXiv 2604.05333)."""
