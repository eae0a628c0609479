"""Graphs, functions, classes and archives as text, in torch's form."""
