"""Pictures of what a browser shows, for people: `make test-slow ARGS="--pictures tests/browser"` keeps them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / ".hgmem" / "pictures"
AT_REST = 2_500  # milliseconds until a drawn graph stands still


@pytest.fixture(scope="session")
def picture(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keeps a picture of a page, or of a part of it, if pictures are asked for."""

    def keep(shown: Any, name: str, **how: Any) -> None:
        if request.config.getoption("--pictures"):
            FOLDER.mkdir(parents=True, exist_ok=True)
            getattr(shown, "page", shown).wait_for_timeout(AT_REST)
            shown.screenshot(path=FOLDER / name, **how)

    return keep
