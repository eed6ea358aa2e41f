"""Builds take the graph library of the replay page along, where npm or Maven is at hand; without it all else works."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Fetches the library into the package before its files are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch, or say what will be missing."""
        fetching = runpy.run_path(str(Path(self.root) / "replay_library.py"))
        if missing := fetching["fetch"]():
            self.app.display_warning(f"{missing}: `hgmem memory export --html` will say how to get it")
