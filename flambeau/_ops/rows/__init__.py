"""Row formulas: what softmax, normalisation, losses and reductions compute along a dim."""
