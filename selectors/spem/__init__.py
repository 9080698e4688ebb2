"""SPEM: procedures taken from won episodes, statistics of skills, and a graph network over skills."""
