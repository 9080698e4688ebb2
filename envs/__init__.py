"""Text environments behind one interface: ALFWorld and ScienceWorld."""
