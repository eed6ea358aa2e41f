"""Who is meant: the other names of an entity, and what speakers call each other."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from hgmem.services import Services
from hgmem.systems.hypermem.dialogues import Dialogue
from hgmem.text.identity import key, uid

_CALLED = re.compile(
    r"(?:^|[.!?] |\n)(?:(?:hey|hi|hello|thanks|thank you|wow|oh|well|congrats|sorry|yes|yeah|no|ok),? )?"
    r"(?P<first>[A-Z][\w'-]+)[,!]|, (?P<last>[A-Z][\w'-]+)[.!?]"
)
_SHARED = 2  # letters at the beginning that a short name has in common with a name
_OFTEN = 3  # times that one of two speakers calls the other by a name that is unlike


def called(dialogue: Dialogue) -> dict[str, str]:
    """Return whom the speakers of a conversation call by another name: a short form, or, of two, any name said often.

    Names are keys: folded, as `hgmem.text.identity.key` does.
    """
    speakers = list(dict.fromkeys(message.speaker for message in dialogue.messages))
    own = {key(part) for speaker in speakers for part in (speaker, *speaker.split())}
    said: Counter[tuple[str, str]] = Counter()
    for message in dialogue.messages:
        for first, last in _CALLED.findall(message.text):
            if key(name := first or last) not in own:
                said[message.speaker, name] += 1
    found: dict[str, str] = {}
    for (speaker, name), times in said.items():
        others = [other for other in speakers if other != speaker]
        alike = [other for other in others if key(other)[:_SHARED] == key(name)[:_SHARED]]
        if len(alike) == 1 or (len(others) == 1 and times >= _OFTEN):
            found[key(name)] = (alike or others)[0]
    return found


def people(text: str, speakers: Sequence[str], nicknames: Mapping[str, str]) -> list[str]:
    """Return the keys of the speakers that a text names, by their own names or others."""
    words = set(re.findall(r"[\w-]+", key(text)))
    named = [speaker for speaker in speakers if set(key(speaker).split()) <= words or key(speaker).split()[0] in words]
    named += [speaker for name, speaker in nicknames.items() if name in words]
    return sorted({key(speaker) for speaker in named})


def other_names(services: Services, names: Sequence[str]) -> list[str]:
    """Return the other names of those of the names that are an entity's: of its class, which decisions make."""
    corpus = services.corpus
    uids = [uid(corpus, "entity", key(name)) for name in names]
    rows = services.database.run("class_names", corpus=corpus, uids=uids) if names else []
    known = {key(name) for name in names}
    return [name for row in rows for name in row["names"] if key(name) not in known]
