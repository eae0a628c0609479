"""Max, average, power-average, adaptive and fractional pools."""
