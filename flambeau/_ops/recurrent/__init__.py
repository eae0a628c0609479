"""Recurrent layers and their single steps."""
