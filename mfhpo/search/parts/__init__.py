"""The parts of a search: its steps, its beginning, prices, and failures at cheap levels."""
