"""Sorted order, the first elements of it, and search in it."""
