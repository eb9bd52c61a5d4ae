"""The one error that the examples show to a user."""

from __future__ import annotations


class SetupError(Exception):
    """Something that the user can put right; the message is one line and says how."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
