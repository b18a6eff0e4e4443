"""The parts of a search: its steps, its beginning, promotions, cheap failures, prices of arms."""
