"""The answers of samplers, in the terms of a study."""
