"""LLM backbones behind one interface."""
