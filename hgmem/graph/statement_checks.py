"""Checks that a statement stays within its corpus: a test applies them to ours, the registry to other packages'."""

import re
from collections import Counter

from hgmem.graph.statements import Statement

_NODE = re.compile(r"(?<!\w)\((?P<variable>\w*)(?P<labels>(?::\w+)+)?\s*(?P<map>\{[^{}]*\})?\s*\)")
_RELATES = re.compile(r"\[(?P<variable>\w*):RELATES\s*(?P<map>\{[^{}]*\})?\]")
NOISE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|//[^\n]*")


def fault(statement: Statement) -> str:
    """Return why a statement of another package is refused, or an empty text."""
    text = NOISE.sub("''", statement.text)
    if not text.startswith("CYPHER 25"):
        return "it does not begin with CYPHER 25"
    if statement.mode not in ("read", "write"):
        return f"its mode is {statement.mode!r}, not 'read' or 'write'"
    if ";" in text:
        return "it holds a semicolon: write one statement in a block"
    if "corpus" not in statement.parameters:
        return "it does not take $corpus"
    if loose := beside_the_corpus(statement.text):
        return f"{loose[0]} is not limited to the corpus: add {{corpus: $corpus}}, or compare its corpus with $corpus"
    return ""


def beside_the_corpus(text: str) -> list[str]:
    """Return the node and RELATES patterns of a statement that could match another corpus.

    A labelled node is bound by `{corpus: $corpus}` (a :Corpus by `{name: $corpus}`) or by `x.corpus = $corpus`, once
    for each pattern without it. A node without a label must be bound elsewhere, be compared in this way, or be an end
    of a bound RELATES.
    """
    text = NOISE.sub("''", text)
    compared = Counter(re.findall(r"\b(\w+)\.corpus = \$corpus\b", text))
    labelled = {found["variable"] for found in _NODE.finditer(text) if found["labels"]} | set(compared)
    named = set(re.findall(r"\bAS (\w+)", text)) | set(re.findall(r"\((\w+) IN \w+ \|", text))
    named |= set(re.findall(r"RELATES[^\]]*\]-[>]?\((\w+):", text))
    loose = []
    for found in _NODE.finditer(text):
        before, after = text[: found.start()].rstrip(), text[found.end() :].lstrip()
        if found["labels"]:
            if not _bound(found, "name" if found["labels"] == ":Corpus" else "corpus", compared):
                loose.append(found[0])
        elif before.endswith(("-", ">", "<-")) or after.startswith(("-", "<-")):
            own = _RELATES.match(after.lstrip("<-")) or _RELATES.search(before[-200:])
            if not (found["variable"] in labelled | named or (not found["variable"] and own)):
                loose.append(found[0])
    return loose + [found[0] for found in _RELATES.finditer(text) if not _bound(found, "corpus", compared)]


def _bound(found: re.Match[str], name: str, compared: Counter[str]) -> bool:
    if re.search(rf"\b{name}: \$corpus\b", found["map"] or ""):
        return True
    compared[found["variable"]] -= 1
    return bool(found["variable"]) and compared[found["variable"]] >= 0
