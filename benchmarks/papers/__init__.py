"""One module per paper: its tables and figures, next to the published ones."""
