"""Losses, and the distances that some are made of."""
