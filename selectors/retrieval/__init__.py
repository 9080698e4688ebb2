"""Retrieval benchmarks: how well a method finds the skills that a query needs, without an agent."""
