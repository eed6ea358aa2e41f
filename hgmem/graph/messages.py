"""The messages of a chunk, as they are stored: one JSON list in `Chunk.messages`."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from hgmem.graph.values import to_json
from hgmem.values.conversations import MessagePlace


def dumped_messages(places: Sequence[MessagePlace]) -> str | None:
    """Return the places as JSON, None if there are none. Metadata that is empty is left out."""
    if not places:
        return None
    return to_json([{name: value for name, value in asdict(place).items() if value != {}} for place in places])


def loaded_messages(text: str | None) -> tuple[MessagePlace, ...]:
    """Return the places that the JSON holds."""
    return tuple(MessagePlace(**place) for place in json.loads(text)) if text else ()
