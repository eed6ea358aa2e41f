"""Who is meant: the other names of an entity, and what speakers call each other."""

import re
from collections.abc import Mapping, Sequence

from hgmem.services import Services
from hgmem.systems.hypermem.dialogues import Dialogue
from hgmem.text.identity import key, uid

_CALLED = re.compile(
    r"(?:^|[.!?] |\n)(?:(?i:hey|hi|hello|thanks|thank you|wow|oh|well|congrats|sorry|yes|yeah|no|ok),? )?"
    r"([A-Z][\w-]+)(?=[,!])|, ([A-Z][\w-]+)(?=[.!?])"
)
_SHORTEST = 3  # letters of a short name
_MORE = 3  # letters that a pet name has beyond a name, as Benny has beyond Ben


def called(dialogue: Dialogue) -> dict[str, str]:
    """Return whom the speakers of a conversation call by a short or longer form of a name, by the form's key."""
    speakers = {key(message.speaker): message.speaker for message in dialogue.messages}
    found: dict[str, str] = {}
    for message in dialogue.messages:
        for form in map(key, (first or last for first, last in _CALLED.findall(message.text))):
            alike = [name for name in speakers if name != key(message.speaker) and _is_form(form, name.split()[0])]
            if len(alike) == 1:
                found[form] = speakers[alike[0]]
    return found


def _is_form(form: str, name: str) -> bool:
    short, longer = sorted((form, name), key=len)
    limit = len(short) + _MORE if short == name else len(longer)
    return len(short) >= _SHORTEST and short != longer and longer.startswith(short) and len(longer) <= limit


def spelled_out(text: str, nicknames: Mapping[str, str]) -> list[str]:
    """Return the speakers whom a text names by another name alone."""
    folded = key(text)
    words = set(re.findall(r"[\w-]+", folded))
    return sorted({speaker for name, speaker in nicknames.items() if name in words and key(speaker) not in folded})


def other_names(services: Services, names: Sequence[str]) -> list[str]:
    """Return the other names of those of the names that are an entity's: of its class, which decisions make."""
    corpus = services.corpus
    uids = [uid(corpus, "entity", key(name)) for name in names]
    rows = services.database.run("class_names", corpus=corpus, uids=uids) if names else []
    known = {key(name) for name in names}
    return [name for row in rows for name in row["names"] if key(name) not in known]
