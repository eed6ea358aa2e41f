"""Pictures of what a browser shows."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The folder for screenshots."""
    folder = Path(__file__).parents[2] / ".hgmem" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
