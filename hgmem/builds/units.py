"""Units of a build: what each reads, and the rows and relationships that it makes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hgmem.models.embedding import Vectors
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Scalar

Property: TypeAlias = Scalar | Sequence[str] | Sequence[int] | Sequence[float]
Plain: TypeAlias = Any  # a value of JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row that a unit makes.

    - `key` is unique among the system's rows of this kind, so that a row made again keeps its uid.
    - `text` is searched by words and by vector, and shown. A row without a text has no vector in the index.
    - `rests_on`: the uids of those inputs whose words are in it. None stands for all inputs of the unit. A deletion
      relies on it being complete.
    - `vector`: a vector of any length that no index holds, such as a sum.
    """

    kind: str
    key: str
    text: str = ""
    properties: Mapping[str, Property] = field(default_factory=dict)
    rests_on: Sequence[str] | None = None
    vector: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """A relationship of one of the system's own types.

    It leads from a row that the unit makes or has as an input, to such a row, a chunk or an entity. Stored ones are
    named by their uid.
    """

    source: Row | str
    type: str
    target: Row | str
    properties: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """A row as it is stored. `document` is empty where it rests on several documents.

    `embedding`, `own_embedding` and `vector` are lists of floats, where they were asked for and the row has them.
    """

    uid: str
    kind: str
    key: str
    text: str
    document: str
    properties: Mapping[str, Property]
    embedding: Sequence[float] | None = None
    own_embedding: Sequence[float] | None = None
    vector: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a unit left for later units: a plain value."""

    uid: str
    key: str
    value: Plain
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The piece in which a stage is made, and made anew.

    Its inputs are everything that `make` may read. Their contents decide whether it has to be made anew.

    - `key` is unique in the stage.
    - `values`: other inputs, as plain values. `sources` are the chunks and the uids of rows that they were made from. A
      chunk's text is no input then, so a unit stays made where a chunk only gained what the values don't have.
    - `after`: keys of earlier units of the same stage, which have to be made before and whose outputs are inputs.
    """

    key: str
    chunks: Sequence[Chunk] = ()
    rows: Sequence[StoredRow] = ()
    outputs: Sequence[Output] = ()
    values: Mapping[str, Plain] = field(default_factory=dict)
    sources: Sequence[str | Chunk] = ()
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a unit makes. `vectors` replace those of input rows in the index: unit vectors by uid.

    `output_rests_on` are the uids of those inputs whose words are in the output, one at least. None stands for all
    inputs of the unit. In a fold, outputs that name fewer are not emptied by each deletion before them.
    """

    rows: Sequence[Row] = ()
    output: Plain = None
    output_rests_on: Sequence[str] | None = None
    ties: Sequence[Tie] = ()
    vectors: Mapping[str, Vectors] = field(default_factory=dict)
