"""Published data that benchmarks read: where they are kept, and how they are fetched."""
