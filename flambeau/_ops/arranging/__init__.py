"""Elements joined, repeated, padded, or put in another order."""
