"""The example of two tenants, run as a user runs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tenants


def test_each_tenant_is_answered_from_its_own_pages(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both get their own answer under either filter; what the number filter lets in is withheld, and named nowhere."""
    monkeypatch.setenv("GROUNDED_DATA", str(data_folder))
    monkeypatch.setattr(sys, "argv", ["tenants.py"])
    assert tenants.main() == 0
    *answers, audit = capsys.readouterr().out.split("\n", maxsplit=4)
    acme, bolt = (
        "Acme customers can return a gadget within 21 days",
        "Bolt customers can return a gadget within 14 days",
    )
    starts = [f"007 by IN: {acme}", f"7 by IN: {bolt}", f"007 by EQ: {acme}", f"7 by EQ: {bolt}"]
    assert [line.startswith(start) for line, start in zip(answers, starts, strict=True)] == [True] * 4
    assert [line.split("(")[-1] for line in answers] == [f"{count} withheld by the guard)" for count in (0, 0, 1, 1)]
    assert [line for line in audit.splitlines() if "AccessGuard" in line] == [
        "  AccessGuard dropped (withheld): access"
    ]
    assert "Acme" not in audit
