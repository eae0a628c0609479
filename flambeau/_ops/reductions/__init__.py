"""Sums, means, extremes, moments, norms, counts: one number of many."""
