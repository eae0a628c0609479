"""Resizing, sampling at positions, and sliding blocks as columns."""
