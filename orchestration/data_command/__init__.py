"""`skillarena data`: fetches or brings in what an experiment needs."""
