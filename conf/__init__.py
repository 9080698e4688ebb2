"""Hydra configuration groups (one folder a noun, one file a choice) and the error types every part shares."""
