"""Running sums, products and extremes along a dim."""
