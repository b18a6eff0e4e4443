"""`NashSampler`: games between players whose utilities are the objectives of a study."""
