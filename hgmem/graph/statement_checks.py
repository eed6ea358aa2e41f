"""Checks that a statement stays within its corpus: tests apply them to ours, `hgmem doctor` to other packages'."""

import re
from collections import Counter

from hgmem.graph.statements import Statement

_NODE = re.compile(
    r"(?<!\w)\((?P<variable>\w*)\s*(?P<labels>:\s*!?\w+(?:\s*[|&:]\s*!?\w+)*)?\s*(?P<map>\{[^{}]*\})?\s*"
    r"(?:WHERE\b(?:[^()]|\([^()]*\))*)?\)"
)
_RELATES = re.compile(r"\[(?P<variable>\w*):RELATES\s*(?P<map>\{[^{}]*\})?\]")
_RELATES_BEFORE = re.compile(_RELATES.pattern + r"\s*->?$")
NOISE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|//[^\n]*|/\*.*?\*/", re.S)

# A comparison that is computed in a WITH and required by its WHERE.
_NAMED = re.compile(r"((?:\w+\.corpus = \$corpus(?: AND )?)+) AS (\w+)((?:, \w+)*)\s+WHERE \2\b")
_OURS = re.compile(r"\bcorpus: \$corpus\s*[,}]")
_COMPARED = re.compile(r"\b(\w+)\.corpus = \$corpus\b")
_CLAUSE = re.compile(
    r"\b(?:MATCH|MERGE|CREATE|WHERE|WITH|RETURN|UNWIND|CALL|SET|REMOVE|DELETE|FOREACH|UNION|ORDER|SKIP|LIMIT|OFFSET|USING"
    r"|SEARCH|SCORE|OPTIONAL|DETACH|YIELD|ON|FILTER|LET|CASE|WHEN|THEN|ELSE|INSERT|FINISH|NEXT)\b",
    re.I,
)
_PATTERNS = ("MATCH", "MERGE", "CREATE", "INSERT")
_GROUP = re.compile(r"\([^()\[\]{}\0]*\)|\[[^()\[\]{}\0]*\]|\{[^()\[\]{}\0]*\}")
_TIED = re.compile(r"(?:\]\s*->?|-->?)\s*$")  # a node follows


def fault(statement: Statement) -> str:
    """Return what is wrong with a statement of another package, or an empty text."""
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
    """Return the node and RELATES patterns of a statement that could match another corpus, or are not understood.

    A labelled node is bound by `{corpus: $corpus}` (a :Corpus by `{name: $corpus}`) or by a condition
    `x.corpus = $corpus` that always has to hold, once for each pattern without it. A node without a label must have the
    corpus in its map, be bound elsewhere, be compared in this way, or be an end of a bound RELATES.
    """
    text = _NAMED.sub(r"\3 WHERE \1", NOISE.sub("''", text))
    compared = Counter(found[1] for found in _COMPARED.finditer(text) if _always_holds(text, found))
    bound = {found["variable"] for found in _NODE.finditer(text) if found["labels"] or _OURS.search(found["map"] or "")}
    bound |= set(compared)
    bound |= set(re.findall(r"\((\w+) IN \w+ \|", text)) | set(re.findall(r"RELATES[^\]]*\]-[>]?\((\w+):", text))
    loose = []
    for found in _NODE.finditer(text):
        if found["labels"]:
            if not _bound(found, "name" if found["labels"] == ":Corpus" else "corpus", compared):
                loose.append(found[0])
        elif _is_pattern(text, found) and not _bound_elsewhere(text, found, bound):
            loose.append(found[0])
    loose += _not_understood(text)
    return loose + [found[0] for found in _RELATES.finditer(text) if not _bound(found, "corpus", compared)]


def _bound(found: re.Match[str], name: str, compared: Counter[str]) -> bool:
    if re.search(rf"\b{name}: \$corpus\s*[,}}]", found["map"] or ""):
        return True
    compared[found["variable"]] -= 1
    return bool(found["variable"]) and compared[found["variable"]] >= 0


def _bound_elsewhere(text: str, found: re.Match[str], bound: set[str]) -> bool:
    """Return whether a node without a label is bound elsewhere, or is an end of a RELATES, which is checked itself."""
    before, after = text[: found.start()].rstrip(), text[found.end() :].lstrip()
    name = found["variable"]
    if name and (name in bound or re.search(rf"\bAS {name}\b", before)):
        return True
    return bool(_RELATES.match(after.lstrip("<-")) or _RELATES_BEFORE.search(before))


def _is_pattern(text: str, found: re.Match[str]) -> bool:
    """Return whether what may be a node, or an expression in parentheses, is a node."""
    after = text[found.end() :].lstrip()
    return _opens_node(text, found.start()) or bool(re.match(r"<?--|<?-\[", after))


def _opens_node(text: str, at: int) -> bool:
    """Return whether the parenthesis here opens a node: after a relationship, or alone in a clause of patterns."""
    before = text[:at].rstrip()
    if _TIED.search(before):
        return True
    clauses = _CLAUSE.findall(_flat(before))
    in_patterns = bool(clauses) and clauses[-1].upper() in _PATTERNS
    return in_patterns and bool(re.search(rf"(?:[,=(]|\b(?:{'|'.join(_PATTERNS)}))$", before, re.I))


def _not_understood(text: str) -> list[str]:
    """Return what opens a node, and is none that the pattern above reads: it might have any label."""
    found = []
    for opening in re.finditer(r"(?<!\w)\(", text):
        nested = text[opening.end() :].lstrip().startswith("(")  # a path in parentheses
        if not nested and not _NODE.match(text, opening.start()) and _opens_node(text, opening.start()):
            found.append(text[opening.start() :].split(")")[0] + ")")
    return found


def _always_holds(text: str, found: re.Match[str]) -> bool:
    """Return whether a comparison is a condition of its own, or one of several that all have to hold."""
    before, after = _flat(f"{text[: found.start()]}\0{text[found.end() :]}").split("\0")
    clauses = list(_CLAUSE.finditer(before))
    if not clauses or clauses[-1][0].upper() != "WHERE":
        return False
    if re.search(r"[(\[]\s*\w+ IN [^()]*$", before[: clauses[-1].start()]):  # a condition on parts of a list
        return False
    before = before[clauses[-1].end() :]
    end, depth = len(after), before.count("(")
    for one in re.finditer(rf"[()\[\]{{}}|,]|{_CLAUSE.pattern}", after, re.I):
        depth -= one[0] == ")"
        if depth < 0 or one[0] != ")":
            end = one.start()
            break
    every = f" {before} \0 {after[:end]} "
    groups_hold = all(word.upper() in ("", "AND") for word in re.findall(r"(\w*)\s*\(", before))
    alone = re.search(r"(?:^|\bAND\b)[\s(]*\0[\s)]*(?:$|\bAND\b)", every.strip(), re.I)
    return groups_hold and bool(alone) and not re.search(r"\bX?OR\b", every, re.I)


def _flat(text: str) -> str:
    """Return the text with `#` for each closed group of brackets, but those around a null character."""
    while (flat := _GROUP.sub("#", text)) != text:
        text = flat
    return text
