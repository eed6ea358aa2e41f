"""Client methods for builds: what systems make of a corpus before they answer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TypedDict, Unpack

from hgmem.client.ask_options import ARGUMENTS, limited
from hgmem.client.async_variants import async_variant
from hgmem.services import Services
from hgmem.systems.building import build_states, estimate_build, make_build
from hgmem.systems.registry import Asked, Recipe
from hgmem.values.arguments import check
from hgmem.values.reports import BuildPlan, BuildReport, BuildStatus, Report


class Built(TypedDict, total=False):
    """Options of a build, by name.

    - `recipe`: a name, or a config of the system. `settings` override single fields of it by name. Without either, a
      build is made anew with the options that it was made with before.
    - `retry_failed`: make units again that failed with the same inputs.
    """

    corpus: str | None
    recipe: Recipe
    settings: Mapping[str, object]
    retry_failed: bool


class Builds(ABC):
    """Methods that make, estimate and list builds. `delete(system=…)` deletes one."""

    @abstractmethod
    def _services(self, corpus: str | None) -> Services:
        """Return the services for work on a corpus."""

    def build(
        self,
        system: str,
        *,
        report: Report = lambda _: None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        **options: Unpack[Built],
    ) -> BuildReport:
        """Make what a system needs of the corpus before it can answer, and return what was done.

        Only units whose texts, settings, prompts or models have changed are made. Raises `BudgetError` after
        `max_calls` requests or `max_tokens` tokens: finished units are saved, and the same call resumes. Raises
        `ConflictError` while another process makes the same build.
        """
        with limited(max_calls=max_calls, max_tokens=max_tokens):
            return make_build(
                self._services(options.get("corpus")),
                _asked(system, options),
                retry_failed=options.get("retry_failed", False),
                report=report,
            )

    def plan_build(self, system: str, **options: Unpack[Built]) -> BuildPlan:
        """Estimate the work and the maximum cost of `build`, without writing."""
        services, asked = self._services(options.get("corpus")), _asked(system, options)
        return estimate_build(services, asked, retry_failed=options.get("retry_failed", False))

    def builds(self, *, corpus: str | None = None) -> tuple[BuildStatus, ...]:
        """Return the builds of the corpus by system, those of systems that are not installed as well."""
        return build_states(self._services(corpus))

    abuild = async_variant(build)
    aplan_build = async_variant(plan_build)
    abuilds = async_variant(builds)


def _asked(system: str, options: Built) -> Asked:
    check({name: options[name] for name in ("settings",) if name in options}, ARGUMENTS)
    return Asked(system=system, recipe=options.get("recipe"), changes=options.get("settings") or {})
