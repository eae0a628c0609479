"""Fourier transforms, spectrograms and signal windows."""
