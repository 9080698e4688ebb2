"""Models and limits that Ray actors host for all cells of a sweep."""
