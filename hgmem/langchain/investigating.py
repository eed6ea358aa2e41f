"""What the retriever, the runnable and the tool are set with: a client, and how its questions are asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from langchain_core.callbacks.manager import AsyncParentRunManager, ParentRunManager
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hgmem.arguments import Argument, check
from hgmem.asking import ARGUMENTS, Asking, fitting
from hgmem.client import HGMem
from hgmem.errors import UsageError
from hgmem.inputs import Scalar
from hgmem.langchain.tracing import Tracing
from hgmem.systems import Recipe

# For each class by itself: LangChain's own, which comes later, ignores what is extra.
STRICT = ConfigDict(extra="forbid")
_CALLBACKS = "give callbacks in the RunnableConfig, which hear of every step and call, or ask with HGMem.ask"
_FIELDS = {name: replace(argument, optional=True) for name, argument in ARGUMENTS.items()}


class Investigating(BaseModel):
    """Fields that say how questions are asked; each is one of `HGMem.ask`, and is left to it where it is not given.

    `system="naive"` looks once, by vector, and takes no steps. The client is not serialised with the rest.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    MORE: ClassVar[Mapping[str, Argument]] = {}  # what is taken beside what a question is asked with
    REFUSED: ClassVar[Mapping[str, str]] = {"watcher": _CALLBACKS}  # what is not, with what to do instead

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

    @model_validator(mode="before")
    @classmethod
    def _fields_fit(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            try:
                cls._refuse(given)
                check(given, {**_FIELDS, **cls.MORE})
            except UsageError as error:
                raise ValueError(str(error)) from error  # pydantic says of which class, and what else is wrong
        return given

    @classmethod
    def _refuse(cls, given: Mapping[Any, Any]) -> None:
        for name in given:
            if name in cls.REFUSED:
                raise UsageError(f"{cls.__name__} takes no {name!r}, it sees to that itself: {cls.REFUSED[name]}")

    def asking(self, manager: ParentRunManager | AsyncParentRunManager | None, given: Mapping[Any, Any]) -> Asking:
        """Return what a question is asked with: these fields, what is `given` for this one, and who traces it.

        Raises `UsageError` for what can't be given, and for values that don't fit.
        """
        self._refuse(given)
        fitting({one: value for one, value in given.items() if value is not None}, more=self.MORE, without=self.REFUSED)
        fields = {name: getattr(self, name) for name in Investigating.model_fields if name != "client"}
        told: Any = {name: value for name, value in {**fields, **given}.items() if value is not None}
        if manager is not None:
            told["watcher"] = Tracing(manager, self.client.model)
        asking: Asking = told
        return asking
