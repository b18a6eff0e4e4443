"""What all races share: the evidence, the roster of arms, the order of values, the answer."""
