"""Texts apart from where they stand: the numbers in them, and what two of them must share to say the same."""
