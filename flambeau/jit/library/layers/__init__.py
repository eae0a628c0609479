"""Layers whose `forward` in Python is no program: their scripted forms, by topic."""
