"""What the retriever, the runnable and the tool are set with: a client, and how its questions are asked."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks.manager import AsyncParentRunManager, ParentRunManager
from pydantic import BaseModel, ConfigDict, Field

from hgmem.asking import Asking
from hgmem.client import HGMem
from hgmem.inputs import Scalar
from hgmem.langchain.tracing import Tracing
from hgmem.systems import Recipe

STRICT = ConfigDict(
    extra="forbid"
)  # for each class by itself: LangChain's own, which comes later, ignores what is extra


class Investigating(BaseModel):
    """Fields that say how questions are asked; each is one of `HGMem.ask`, and is left to it where it is not given.

    `system="naive"` looks once, by vector, and takes no steps. The client is not serialised with the rest.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: HGMem = Field(exclude=True, repr=False)
    corpus: str | None = None
    system: str | None = None
    recipe: Recipe = None
    settings: Mapping[str, Any] | None = None
    steps: int | None = None
    filters: Mapping[str, Scalar | Sequence[Scalar]] | None = None
    memory: str | None = None
    max_calls: int | None = None
    max_tokens: int | None = None

    def asking(self, manager: ParentRunManager | AsyncParentRunManager | None, given: Mapping[str, Any]) -> Asking:
        """Return what a question is asked with: these fields, what is `given` for this one, and who traces it."""
        own = {name: getattr(self, name) for name in Investigating.model_fields if name != "client"}
        told: Any = {name: value for name, value in {**own, **given}.items() if value is not None}
        if manager is not None:
            told["watcher"] = Tracing(manager, self.client.model)
        asking: Asking = told
        return asking
