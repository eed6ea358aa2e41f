"""Types of fields that are JSON as text, as in the graph: what the JSON must be, so that hgmem can read it back."""

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from hgmem.corpus.archive.fields import Called, Integer, Number, Text
from hgmem.extraction.replies import Extraction


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class StoredOperation(_Stored):
    """An `Operation` of a step."""

    kind: Text
    point: Text = ""
    parts: list[Text]
    reason: Text = ""


class StoredSubquery(_Stored):
    """A `Subquery` that a step planned."""

    text: Text
    concern: Text = ""
    strategy: Text = "global"
    targets: list[Text]


class StoredBuiltHit(_Stored):
    """A `BuiltHit` of a sub-query."""

    uid: Text
    kind: Text
    rank: Integer
    text: Text
    score: Number = 0.0
    source: Text = ""


class StoredEntity(_Stored):
    """An `EntityContribution`."""

    name: Text
    type: Text = ""
    description: Text = ""
    chunks: list[Text]


class StoredRelation(_Stored):
    """A `RelationContribution`."""

    description: Text = ""
    keywords: list[Text] = []
    weight: Number = 1.0
    chunks: list[Text]


class StoredDescription(BaseModel):
    """A summarized description (`text`) and the hash of its sources (`of`)."""

    text: str
    of: str


def _json_of(type_: Any) -> AfterValidator:
    """Return the validator of texts that are JSON of this type."""
    stored = TypeAdapter[Any](type_)
    return _accepted_by(lambda text: stored.validate_python(json.loads(text), strict=True))


def _accepted_by(read: Callable[[str], object]) -> AfterValidator:
    """Return the validator of texts that hold such JSON. An error inside counts for the whole text."""

    def checked(text: str) -> str:
        try:
            read(text)
        except (RecursionError, ValidationError):
            raise ValueError("JSON of another type") from None
        return text

    return AfterValidator(checked)


Counts: TypeAlias = dict[str, Number | dict[str, Number | dict[str, Number]]]

Object: TypeAlias = Annotated[Text, _json_of(dict[str, Any]), Called("object")]
Extracted: TypeAlias = Annotated[Text, _accepted_by(Extraction.model_validate_json), Called("extraction")]
Condensed: TypeAlias = Annotated[Text, _json_of(StoredDescription), Called("condensed")]
GivenEntities: TypeAlias = Annotated[Text, _json_of(list[StoredEntity]), Called("given entities")]
GivenRelations: TypeAlias = Annotated[Text, _json_of(list[StoredRelation]), Called("given relations")]
Operations: TypeAlias = Annotated[Text, _json_of(list[StoredOperation]), Called("operations")]
Planned: TypeAlias = Annotated[Text, _json_of(list[StoredSubquery]), Called("planned")]
Built: TypeAlias = Annotated[Text, _json_of(list[StoredBuiltHit]), Called("retrieved built rows")]
AnyJson: TypeAlias = Annotated[Text, _json_of(Any), Called("JSON")]
Usage: TypeAlias = Annotated[Text, _json_of(Counts), Called("usage")]
Filters: TypeAlias = Annotated[Text, _json_of(dict[str, list[Text]]), Called("filters")]
