"""SkillDAG (arXiv 2606.03056)."""
