"""Batch, instance, layer, group and RMS norm; weights by length and direction."""
