"""`skillarena library`: puts skill libraries together, looks into them and prepares them for selectors."""
