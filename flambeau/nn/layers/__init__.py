"""Layers by family; `flambeau.nn` gives them all and imports a family when it is first used."""
