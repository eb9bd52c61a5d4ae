"""The example of two tenants, run as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tenants


def test_each_tenant_is_answered_from_its_own_pages(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both get their own answer, and where the filter was forgotten two pages are withheld without their ids."""
    monkeypatch.setenv("GROUNDED_DATA", str(data_folder))
    assert tenants.main() == 0
    acme, bolt, forgotten, *audit = capsys.readouterr().out.splitlines()
    assert acme.startswith("t_007: Acme customers can return a gadget within 21 days")
    assert bolt.startswith("t_7: Bolt customers can return a gadget within 14 days")
    assert "Bolt customers" in forgotten
    assert not [line for line in (bolt, forgotten, *audit) if "Acme" in line or "t_007" in line]
    assert [line for line in audit if "AccessGuard" in line] == ["  AccessGuard dropped (withheld): access"] * 2
