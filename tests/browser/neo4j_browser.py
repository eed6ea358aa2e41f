"""Drives Neo4j Browser as a user would: connect, click through a guide, run the editor's content."""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

SLOW = 60_000  # milliseconds, enough for two busy cores


@dataclass
class Neo4jBrowser:
    """A tab of Neo4j Browser; the newest frame is the first one."""

    tab: Page

    def connect(self, password: str) -> None:
        field = self.tab.locator("input[type=password]").first
        field.wait_for(timeout=SLOW)
        field.fill(password)
        self.tab.keyboard.press("Enter")
        expect(self.tab.get_by_text("You are connected as user")).to_be_visible(timeout=SLOW)

    @property
    def frame(self) -> Locator:
        return self.tab.get_by_test_id("frame").first

    def run(self, command: str) -> None:
        """Replace the editor's content by a command, and run it."""
        self._type(command)
        self._until(command)

    def _type(self, command: str) -> None:
        self.tab.get_by_test_id("activeEditor").click()
        self.tab.keyboard.press("Control+A")
        self.tab.keyboard.insert_text(command)
        self._run(command)

    def clear(self) -> None:
        """Close all frames."""
        self._type(":clear")
        expect(self.tab.get_by_test_id("frame")).to_have_count(0, timeout=SLOW)

    def click(self, block: Locator) -> None:
        """Click a query or command of a guide, and run it."""
        command = block.inner_text()
        block.click()
        self._run(command)
        self._until(command)

    def _run(self, command: str) -> None:
        """Run what the editor holds as soon as it holds this: before, the button does nothing."""
        expect(self.tab.get_by_test_id("activeEditor")).to_contain_text(_beginning(command), timeout=SLOW)
        self.tab.get_by_test_id("editor-Run").click()

    def _until(self, command: str) -> None:
        expect(self.frame.get_by_test_id("frameCommand")).to_contain_text(_beginning(command), timeout=SLOW)

    def nodes(self, least: int) -> int:
        """Wait until the newest frame draws at least `least` nodes; return their number."""
        drawn = self.frame.locator("g.node")
        expect(drawn.nth(least - 1)).to_be_attached(timeout=SLOW)
        return drawn.count()

    def shade(self, caption: str) -> str:
        """Return the colour of the first node whose caption begins with this text."""
        circle = self.frame.locator("g.node", has_text=caption).first.locator("circle.b-outline, circle.outline").first
        return str(circle.get_attribute("fill"))


def _beginning(command: str) -> str:
    """Return the beginning of a command's first line that is no comment."""
    return next(line for line in command.splitlines() if not line.startswith("//")).strip()[:40]
