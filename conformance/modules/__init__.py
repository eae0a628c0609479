"""Modules behave as torch's do: scenarios, and what runs them in both libraries."""
