"""The kinds of experiments that a sampler can run on a study."""
