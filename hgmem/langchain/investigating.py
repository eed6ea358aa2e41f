"""Shared fields of the retriever, the runnable and the tool: the client and the ask options."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from langchain_core.callbacks.manager import AsyncParentRunManager, ParentRunManager
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hgmem.client import HGMem
from hgmem.errors import UsageError
from hgmem.langchain.tracing import Tracing
from hgmem.values.arguments import ARGUMENTS, Argument, AskOptions, Recipe, check, check_ask_options
from hgmem.values.inputs import Scalar

# Set on each class: LangChain's base class, which comes later in the MRO, ignores extra fields.
STRICT = ConfigDict(extra="forbid")
_CALLBACKS = "pass callbacks in the RunnableConfig, or ask with HGMem.ask"
_FIELDS = {name: replace(argument, optional=True) for name, argument in ARGUMENTS.items()}


class Investigating(BaseModel):
    """Ask options as fields. Missing ones keep the defaults of `HGMem.ask`.

    `system` is a name of `HGMem.systems()`. The client is not serialised. An `owner` can be replaced by another for one
    call, but not removed.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    MORE: ClassVar[Mapping[str, Argument]] = {}  # arguments beside the ask options
    REFUSED: ClassVar[Mapping[str, str]] = {"watcher": _CALLBACKS}  # rejected ask options, with the alternative

    client: HGMem = Field(exclude=True, repr=False)
    corpus: str | None = None
    system: str | None = None
    recipe: Recipe = None
    settings: Mapping[str, Any] | None = None
    steps: int | None = None
    filters: Mapping[str, Scalar | Sequence[Scalar]] | None = None
    owner: str | None = None
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
                raise ValueError(str(error)) from error  # pydantic adds the class and further errors
        return given

    @classmethod
    def _refuse(cls, given: Mapping[Any, Any]) -> None:
        for name in given:
            if name in cls.REFUSED:
                raise UsageError(f"{cls.__name__} does not accept {name!r}: {cls.REFUSED[name]}")

    def options(self, manager: ParentRunManager | AsyncParentRunManager | None, given: Mapping[Any, Any]) -> AskOptions:
        """Return the ask options of a question: the fields, overridden by `given`, with tracing if there is a manager.

        Raises `UsageError` for unsupported names and invalid values.
        """
        self._refuse(given)
        check_ask_options(
            {one: value for one, value in given.items() if value is not None}, more=self.MORE, without=self.REFUSED
        )
        fields = {name: getattr(self, name) for name in Investigating.model_fields if name != "client"}
        options: dict[str, Any] = {name: value for name, value in {**fields, **given}.items() if value is not None}
        if self.owner is not None:
            options.setdefault("owner", self.owner)  # None for one call does not show it everybody's memories
        if manager is not None:
            options["watcher"] = Tracing(manager, self.client.model)
        return cast("AskOptions", options)
