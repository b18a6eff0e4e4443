"""Which arms of a search are begun, go on, or are too dear."""
