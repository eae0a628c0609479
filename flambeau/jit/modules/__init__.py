"""Scripted functions and modules, and how Python objects become them."""
