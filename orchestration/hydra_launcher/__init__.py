"""Hydra plugin: the launcher that plays all cells of a multirun in one sweep."""
