"""What tests of the synthesizer share."""

from __future__ import annotations

from tests.answers import ask

__all__ = ["ask"]
