"""Roles of episodes in a topic and of facts in an episode (paper, section 3.1)."""

from collections.abc import Sequence
from difflib import get_close_matches

EPISODE_ROLES = (
    "initiating",
    "developing",
    "climax",
    "concluding",
    "recurring",
    "background",
    "key_moment",
    "transition",
)
FACT_ROLES = ("core", "context", "detail", "temporal", "causal", "spatial")
"""The official prompt offers `spatial` too, which its enumeration refuses; here it is a role."""

USUAL_WEIGHT = 0.5  # of what a reply leaves out (official code)
USUAL_EPISODE_ROLE, USUAL_FACT_ROLE = "developing", "detail"

_OTHER_WORDS = {
    "beginning": "initiating",
    "start": "initiating",
    "introduction": "initiating",
    "turning_point": "key_moment",
    "ending": "concluding",
    "conclusion": "concluding",
    "resolution": "concluding",
    "main": "core",
    "central": "core",
    "key": "core",
    "time": "temporal",
    "cause": "causal",
    "reason": "causal",
    "place": "spatial",
    "location": "spatial",
    "supporting": "context",
}


def role_of(word: str, roles: Sequence[str], *, usual: str) -> str:
    """Return the role that a model's word means: the same, the nearest in letters, or else the usual one."""
    given = word.strip().casefold().replace(" ", "_").replace("-", "_")
    given = _OTHER_WORDS.get(given, given)
    if given in roles:
        return given
    return next(iter(get_close_matches(given, roles, n=1, cutoff=0.5)), usual)


def membership(word: str, weight: float, roles: Sequence[str], *, usual: str) -> dict[str, str | float]:
    """Return role and weight of a member. A role that is none becomes the nearest, and the given word is kept."""
    role, given = role_of(word, roles, usual=usual), word.strip()
    return {"role": role, "weight": weight_of(weight), **({"given": given} if given not in ("", role) else {})}


def weight_of(weight: float) -> float:
    """Return a weight within 0 and 1."""
    return min(max(float(weight), 0.0), 1.0)
