"""What a fact says that holds until another ends it, told by rules of English: guesses for a ledger without a model.

A state has a subject, a role such as work or home, and what it is about. One of a role that has room for one thing,
such as a home, ends the one before; so does a sentence that says that it ended ("Ann quit Norden Ferries").
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from hgmem.models.extractive.key_phrases import stems
from hgmem.text.segmentation import words

Relation: TypeAlias = Literal["same", "adds", "updates", "contradicts"]

_LEAD = re.compile(
    r"^(?:[\w .'-]{1,40}: )?(?:(?:actually|anyway|and|but|by the way|no|now|oh|ok|so|sorry|today|well|yeah|yes"
    r"|yesterday)[,:]? )*",
    re.IGNORECASE,
)
_WHO = r"(?P<subject>[A-Z][\w-]*(?: [A-Z][\w-]*)*(?:'s(?: \w+){1,2}?)?|(?i:the|this|that|our|my)(?: \w+){1,3}?)"
_BEFORE = (
    r"(?: (?:just|really|already|finally|now|also|recently|then|still|actually|officially|has|have|had|is|was|will))*"
)
_HOLDS = {  # by role: what says that something holds
    "work": r"work(?:s|ed|ing)? (?:for|at)|(?:start(?:s|ed|ing)|began) (?:work(?:ing)? )?(?:at|for|with)"
    r"|employed (?:at|by)|(?:gets?|got|took|has|found) (?:a|the)(?: \w+)? job (?:at|with)|joins?|joined|joining",
    "home": r"(?:lives?|lived|living) (?:in|at|near|on)|(?:moves?|moved|moving)(?: back)? (?:in)?to|relocated to"
    r"|settled in",
    "partner": r"(?:married|engaged) to|(?:marries|married)|(?:dates|dated|dating)",
    "own": r"(?:buys?|bought|owns?|owned|gets?|got|has|adopted|leased|rents?|rented)",
    "do": r"(?:starts?|started|began|took up|plays?|practi[cs]es?|learns?|studies|attends?|goes to)",
    "like": r"(?:loves?|loved|likes?|liked|enjoys?|enjoyed|prefers?)",
}
_VALUES = frozenset(("value", "named"))  # what is at a time, costs so much, or is called so
_ONE = frozenset(("work", "home", "partner", *_VALUES))  # roles in which a new thing ends the one before
_ENDS = (
    r"quits?|resign(?:s|ed) from|(?:leaves|left|leaving)|lost|(?:fired|laid off) (?:from|by)|retire[sd](?: from)?"
    r"|sells?|sold|gave (?:away|up)|got rid of|scrapped|donated|returned|moved out of|divorced|broke up with"
    r"|separated from"
    r"|dropped(?: out of)?|cancell?ed|(?:no longer|doesn't|does not|isn't|is not|stopped|can't stand|hates?)(?: \w+)??"
)
_SUBJECT = re.compile(_WHO)
_STATE = [(role, re.compile(rf"{_WHO}{_BEFORE} (?:{verbs}) (?P<about>.+)")) for role, verbs in _HOLDS.items()]
_END = re.compile(rf"{_WHO}{_BEFORE} (?:{_ENDS})\b(?P<about>.*)")
_DATE = (
    r"(?:\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:jan|febr)uary|march|april|may|june|july|august|october"
    r"|(?:sept|nov|dec)ember)"
)
_IS = r"(?:is|are|was|will be|has been|starts?|costs?|takes place|leaves?|opens?)\b"
_AT = r"(?: (?:brought forward|moved|now|planned|postponed|rescheduled|scheduled|set|at|for|in|on|the|to))*"
_VALUE = re.compile(
    rf"{_WHO} (?:{_IS}{_AT}|(?:is|are|was) (?P<named>called|named)) (?P<about>(?(named)|(?i:{_DATE})).+)"
)
_PLACE = (
    re.compile(  # a numbered place, or a name after "at": one is in both of two names, as in a town and in its land
        rf"{_WHO}(?: is| are|'s)(?: (?:again|back|currently|now|still))*"
        r" (?:(?P<at>at|in|on) (?P<about>(?P<head>[A-Za-z][\w-]*) (?:(?:no\.?|number) )?(?:\d+[A-Za-z]?|[A-Z]))"
        r"|at (?P<name>(?!Christmas|Easter|New Year)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*))"
        r"(?=\W*$|[,;.!?(]| (?:again|and|because|but|for|now|since|so|this|today|until|with)\b)"
    )
)
_REST = re.compile(  # what follows tells when or why
    r"(?:[,;.!?(]|\b(?:and|because|but|since|so|when|while|until|after|before|last|next|yesterday|today|tomorrow|for|on"
    r"|in (?=[A-Z]\w+ *\d|\d|January|February|March|April|May|June|July|August|September|October|November|December)"
    r"|anymore|any more)\b).*"
)
_LIVES = _ONE - _VALUES
_PLANNED = re.compile(r"\b(?:will|is (?:going to|moving|starting|joining|leaving|marrying))\b|'ll\b")
_SAID = frozenset(["a", "actually", "an", "and", "at", "is", "it", "now", "of", "on", "the"])
_BARE = frozenset(stems("job jobs work position it there them"))
_LIKE = 0.6  # of the words of what ends


@dataclass(frozen=True, slots=True)
class State:
    """What a fact says of a subject: that something holds in a role, or, with the role `ends`, that it ended.

    The role of a place is a preposition and what the place is, such as "at berth".
    """

    subject: frozenset[str]
    role: str
    about: frozenset[str]


@lru_cache(maxsize=65_536)
def states(content: str) -> tuple[State, ...]:
    """Return the states that a fact tells, in the third person."""
    return tuple(_states(_LEAD.sub("", content, count=1).replace("’", "'")))


def _states(text: str) -> Iterator[State]:
    ended = _END.match(text)
    if ended:
        yield _state("ends", ended, _REST.sub("", ended["about"]))
    for role, pattern in _STATE:
        if not (ended and role in ("own", "like")) and (told := pattern.match(text)):
            yield _state(role, told, _REST.sub("", told["about"]))
    if told := _VALUE.match(text):
        yield _state("named" if told["named"] else "value", told, re.sub(r"[,;.!?(].*", "", told["about"]))
    if (told := _PLACE.match(text)) and stems(told["subject"]):  # "it" may be anything
        if told["name"]:
            yield _state("at name", told, told["name"])
        elif kind := stems(told["head"]):
            yield _state(f"{told['at']} {kind[0]}", told, told["about"])


def _state(role: str, told: re.Match[str], about: str) -> State:
    parts = stems(about) if role in _HOLDS or role == "ends" else words(about)  # a day of one digit counts
    return State(subject=frozenset(stems(told["subject"])), role=role, about=frozenset(parts) - _SAID)


def slots(content: str) -> set[tuple[frozenset[str], str]]:
    """Return the subjects and roles in which there is room for one thing, of which a fact tells."""
    return {(one.subject, one.role) for one in states(content) if _has_one(one.role)}


def _has_one(role: str) -> bool:
    """Return whether a role has room for one thing."""
    return role in _ONE or " " in role


def relation(earlier: str, later: str) -> Relation | None:
    """Return how a fact stands to an earlier one: it says the `same`, `updates` it, or does neither (None)."""
    if (said := _said(earlier)) and said == _said(later):
        return "same"
    found = {_between(old, new) for new in states(later) for old in states(earlier) if new.subject == old.subject}
    if kind := next((kind for kind in found if kind), None):
        return kind
    subject = _subject(earlier)
    told = frozenset(stems(earlier)) - subject
    for new in states(later):
        about = new.about - subject
        if new.role == "ends" and new.subject == subject and about and len(about & told) >= _LIKE * len(about):
            return "updates"
    return None


def _said(content: str) -> frozenset[str]:
    return frozenset(words(_LEAD.sub("", content, count=1))) - _SAID


def _subject(content: str) -> frozenset[str]:
    found = _SUBJECT.match(_LEAD.sub("", content, count=1))
    return frozenset(stems(found["subject"])) if found else frozenset()


def _between(old: State, new: State) -> Relation | None:
    """Return how one state stands to an earlier one of the same subject."""
    if new.role == "ends":
        ended = not (new.about - _BARE).isdisjoint(old.about) if new.about - _BARE else old.role == "work"
        return "updates" if ended and old.role != "ends" else None
    if new.role != old.role or not _has_one(new.role) or not (new.about and old.about):
        return None
    if new.about == old.about:
        return "same"
    if new.role == "value":
        return "updates" if _unit(new) == _unit(old) else None
    return "updates" if new.role not in _LIVES or new.about.isdisjoint(old.about) else None


def _unit(state: State) -> set[str]:
    """Return what a value is of, such as crowns, nothing for a date."""
    return {word for word in state.about if not re.match(_DATE, word)}


def is_planned(content: str) -> bool:
    """Return whether a fact tells a state that is to come, such as "Ann is moving to Lund in June"."""
    return _PLANNED.search(content) is not None and any(one.role in _LIVES for one in states(content))
