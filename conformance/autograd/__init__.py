"""Scenarios of autograd, by topic; `test_autograd.py` runs them under both libraries."""
