"""The clock: sampling in rounds, statistics, baselines, the speed of light, where the time went."""
