"""Measure entity resolution: classes under random decisions, candidates of very many names, and labelled pairs.

    python benchmarks/resolution.py decisions [--number 10000] [--seed N]
    python benchmarks/resolution.py kills [--number 30] [--seed N]
    python benchmarks/resolution.py names --texts DIR [--number 639500]
    python benchmarks/resolution.py labelled PAIRS.jsonl [--decisions EXPORTED.json …]

`decisions` compares after each change the stored classes with those that a second, plain implementation makes of all
decisions from scratch, and `kills` after each SIGKILL of what `hgmem resolve --rules-only` and `hgmem resolve undo --by
rule` call. `names` writes entities with invented names, made of the letters and frequencies of the names in texts, and
makes a dry run. `labelled` reads lines of JSON with `text`, `a`, `b`, `same`, and optionally `hard` and the types
`type_a` and `type_b`, and prints precision and recall with Wilson's 95 % intervals: of the rules, of candidates, of
neo4j-graphrag's `FuzzyMatchResolver.compute_similarity` at its threshold of .8, and of decisions that `hgmem resolve
export` wrote.
"""

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import neo4j
from measures import peak_megabytes
from rapidfuzz import fuzz
from rapidfuzz.utils import default_process
from running import access, running

from hgmem import Document, Given, GivenChunk, GivenEntity, HGMem
from hgmem.errors import HGMemError
from hgmem.resolution.candidates import by_names
from hgmem.resolution.deciding import Judgement, decide
from hgmem.resolution.names import Named
from hgmem.resolution.rules import joined
from hgmem.testing import DeterministicEmbedder
from hgmem.text.identity import key, uid

PEOPLE, DOCUMENTS = 60, 30
KINDS, AUTHORS = ("same", "same", "same", "different"), ("person", "rule", "model")
RANKS = {"person": 0, "rule": 1, "model": 2}
TITLES = ("Mr.", "Mrs.", "Miss", "Dr.", "Captain", "Sir")
PAIRS = 5_000  # that rules join, in transactions of 500
DECIDE = """
import sys
from hgmem import HGMem
from hgmem.testing import DeterministicEmbedder

with HGMem.open("random", embedder=DeterministicEmbedder()) as hg:
    hg.resolve(rules_only=True) if sys.argv[1] == "resolve" else hg.undo(by="rule")
"""
CREATE = """
UNWIND $rows AS row
CREATE (e:Entity {uid: row.uid, corpus: $corpus, memory: '', key: row.key, name: row.name, type: row.type,
                  description: ''})
WITH e, row MATCH (c:Chunk {corpus: $corpus}) WHERE c.position = row.at CREATE (e)-[:FROM_CHUNK]->(c)
"""


def driven(server: Any) -> neo4j.Driver:
    """Return a driver of Neo4j's own for a server."""
    return neo4j.GraphDatabase.driver(server.uri, auth=(server.username, server.password.get_secret_value()))


# Decisions ------------------------------------------------------------------------------------------------------


def document(draw: random.Random, at: int) -> Given:
    """Return a document with a chunk that names a few people."""
    named = draw.sample(range(PEOPLE), 6)
    text = " ".join(f"Person {one}." for one in named)
    return Given(
        documents=(Document(id=f"d{at}", text=text),),
        chunks=(GivenChunk(id="c", document=f"d{at}", text=text),),
        entities=tuple(GivenEntity(name=f"Person {one}", type="person", chunks=("c",)) for one in named),
    )


def decisions(number: int, seed: int) -> dict[str, Any]:
    """Return what was done in random order, and how often a class was wrong afterwards."""
    draw, done, wrong = random.Random(seed), Counter[str](), 0  # noqa: S311
    uids = [uid("random", "entity", key(f"Person {one}")) for one in range(PEOPLE)]
    with (
        running() as (server, _),
        driven(server) as driver,
        HGMem.open("random", embedder=DeterministicEmbedder(), **access(server)) as hg,
    ):
        for at in range(DOCUMENTS):
            hg.add_graph(document(draw, at))
        began, most, every = time.perf_counter(), 0, list[dict[str, Any]]()
        while done["decided"] + done["undone"] < number:
            done[_changed(hg, draw, uids, every)] += 1
            every, stored = _stored(driver)
            wrong += plain_classes(every, stored) != stored
            most = max(most, len(every))
            if sum(done.values()) % 500 == 0:
                seconds = round(time.perf_counter() - began)
                print(dict(done), Counter(one["kind"] for one in every), f"{wrong} wrong, {seconds} s", flush=True)
        findings = [one.name for one in hg.check().findings]
    took = round(time.perf_counter() - began, 1)
    return {**done, "wrong": wrong, "findings": findings, "most_decisions": most, "seconds": took}


def _stored(driver: neo4j.Driver) -> tuple[list[dict[str, Any]], dict[str, str | None]]:
    """Return all decisions, and the stored class of each entity."""
    every = driver.execute_query("MATCH (d:Decision {corpus: 'random'}) RETURN d {.*} AS decision").records
    rows = driver.execute_query("MATCH (e:Entity {corpus: 'random', memory: ''}) RETURN e.uid, e.canonical_uid").records
    return [row["decision"] for row in every], {row[0]: row[1] for row in rows}


def plain_classes(every: Iterable[dict[str, Any]], entities: Iterable[str]) -> dict[str, str | None]:
    """Return the class of each entity, from the rule of decision 34, without the code of hgmem."""
    label = {one: one for one in entities}
    members = {one: {one} for one in label}
    awake = [one for one in every if one["a"] in label and one["b"] in label]
    apart = [one for one in awake if one["kind"] == "different"]
    for one in sorted(awake, key=lambda one: (RANKS[one["by"]], -one["confidence"], one["uid"])):
        joining = {label[one["a"]], label[one["b"]]}
        barred = (
            RANKS[other["by"]] <= RANKS[one["by"]] and {label[other["a"]], label[other["b"]]} == joining
            for other in apart
        )
        if one["kind"] == "same" and not any(barred):
            whole = set[str]().union(*(members.pop(old) for old in joining))
            members[min(whole)] = whole
            label |= dict.fromkeys(whole, min(whole))
    return {end: own if len(members[own]) > 1 else None for end, own in label.items()}


def _changed(hg: HGMem, draw: random.Random, uids: Sequence[str], every: Sequence[dict[str, Any]]) -> str:
    """Make one random change, where `every` are the decisions, and return what it was."""
    chance = draw.random()
    try:
        if chance < 0.46:
            a, b = sorted(draw.sample(uids, 2))
            kind, by, sure = draw.choice(KINDS), draw.choice(AUTHORS), draw.choice((0.5, 0.8, 1.0))
            judged: Any = Judgement(ends=(a, b), kind=kind, by=by, confidence=sure)  # type: ignore[arg-type]
            return "decided" if decide(hg._services(None), [judged]) else "refused"
        if chance < 0.92:
            if not every:
                return "refused"
            hg.undo(draw.choice(every)["uid"])
            return "undone"
        if chance < 0.96:
            hg.delete(document=f"d{draw.randrange(DOCUMENTS)}")
            return "deleted"
        hg.add_graph(document(draw, draw.randrange(DOCUMENTS)))
        return "added"
    except HGMemError:
        return "refused"  # an entity or a document is gone


def kills(number: int, seed: int) -> dict[str, Any]:
    """Return how often a class was wrong after a process was killed that decided, or took decisions back."""
    draw, done, wrong = random.Random(seed), Counter[str](), 0  # noqa: S311
    names = [f"{title}Ada Rhee{at}" for at in range(PAIRS) for title in ("", "Captain ")]
    given = Given(
        documents=(Document(id="d", text="All."),),
        chunks=(GivenChunk(id="c", document="d", text="All."),),
        entities=tuple(GivenEntity(name=name, type="person", chunks=("c",)) for name in names),
    )
    with (
        running() as (server, data),
        driven(server) as driver,
        HGMem.open("random", embedder=DeterministicEmbedder(), **access(server)) as hg,
    ):
        hg.add_graph(given)
        doing, findings = "resolve", list[str]()
        while sum(done.values()) < number:
            if _killed(doing, data, driver, draw):
                done[doing] += 1
            every, stored = _stored(driver)
            wrong += plain_classes(every, stored) != stored
            findings += [one.name for one in hg.check().findings]
            left = sum(one["kind"] == "same" for one in every)
            print(dict(done), f"{left} of {PAIRS} stand, {wrong} wrong, {findings}", flush=True)
            if doing == "undo" and not left:
                driver.execute_query("MATCH (d:Decision {corpus: 'random'}) DELETE d")  # open ones, which tie nothing
            if left in (0, PAIRS):
                doing = "undo" if left else "resolve"
    return {**done, "wrong": wrong, "findings": findings}


def _killed(doing: str, data: Path, driver: neo4j.Driver, draw: random.Random) -> bool:
    """Start a process, kill it soon after its first transaction, and return whether it was running then.

    Neo4j may still commit what the killed process had sent: this waits until no other transaction runs.
    """
    same = "MATCH (d:Decision {corpus: 'random', kind: 'same'}) RETURN count(d) AS number"
    before = driver.execute_query(same).records
    environment = {**os.environ, "HGMEM_DATA": str(data)}
    with subprocess.Popen([sys.executable, "-c", DECIDE, doing], env=environment) as process:
        while process.poll() is None and driver.execute_query(same).records == before:
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 0.4))
        process.kill()
        killed = process.wait() < 0
    others = "SHOW TRANSACTIONS YIELD currentQuery WHERE NOT currentQuery STARTS WITH 'SHOW' RETURN count(*) AS number"
    while driver.execute_query(others).records[0]["number"]:
        time.sleep(0.05)
    return killed


# Names ----------------------------------------------------------------------------------------------------------


def invented(texts: Path, draw: random.Random) -> Iterator[str]:
    """Yield names by a chain of three letters that the capitalized words of the texts give."""
    words = Counter(
        word
        for path in sorted(texts.rglob("*.txt"))
        for word in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{3,10}\b", path.read_text("utf-8", errors="ignore"))
    )
    following: dict[str, list[str]] = defaultdict(list)
    for word in words:
        padded = f"^^{word.lower()}$"
        for at in range(len(padded) - 2):
            following[padded[at : at + 2]].append(padded[at + 2])
    while True:
        made = "^^"
        while made[-1] != "$" and len(made) < 14:
            made += draw.choice(following[made[-2:]])
        if made[-1] == "$" and len(made) > 6:
            yield made[2:-1].capitalize()


def realistic(number: int, texts: Path, seed: int) -> list[Named]:
    """Return entities with different names: people, firms, places and ideas, some words far more often than others."""
    draw = random.Random(seed)  # noqa: S311
    source = invented(texts, draw)
    words = list(dict.fromkeys(next(source) for _ in range(90_000)))
    weights = [1 / (at + 10) for at in range(len(words))]
    forms: list[tuple[str, Callable[[str, str], str]]] = [
        *[("person", lambda a, b: f"{a} {b}")] * 5,
        *[("person", lambda a, b: f"{draw.choice(TITLES)} {a} {b}")] * 2,
        ("person", lambda a, b: f"{draw.choice(TITLES)} {b}"),
        ("person", lambda a, b: f"{a[0]}. {b}"),
        ("organization", lambda a, b: f"{a} & {b}"),
        ("organization", lambda a, b: f"The {a} {draw.choice(('Company', 'Society', 'Bank', 'Council'))} of {b}"),
        ("place", lambda a, b: f"{a} {draw.choice(('Street', 'Hill', 'Bridge', 'House'))}, {b}"),
        ("place", lambda a, _: f"{draw.choice(('the ', ''))}{a}"),
        ("concept", lambda a, b: f"{a.lower()} {b.lower()}s"),
    ]
    found: dict[str, Named] = {}
    while len(found) < number:
        pairs = zip(draw.choices(words, weights, k=10_000), draw.choices(words, k=10_000), strict=True)
        for a, b in pairs:
            kind, form = draw.choice(forms)
            name = form(a, b)
            at = uid("names", "entity", key(name))
            found[at] = Named(uid=at, name=name, type=kind, chunks=draw.randint(1, 9))
    return list(found.values())[:number]


def names(number: int, texts: Path, seed: int) -> dict[str, Any]:
    """Return seconds, memory and numbers of the candidates of names, and of a dry run on a server that holds them."""
    entities = realistic(number, texts, seed)
    before, began, busy = peak_megabytes(), time.perf_counter(), time.process_time()
    found = by_names(entities).best()
    measured = {
        "entities": len(entities),
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
        "megabytes": [before, peak_megabytes()],
        "candidates": len(found),
        "by": Counter(one.why for one in found),
    }
    print(measured, flush=True)
    del found
    opened = running(heap="2g", pagecache="1g")
    with opened as (server, _), HGMem.open("names", embedder=DeterministicEmbedder(), **access(server)) as hg:
        hg.add(Document(id="d", text=" ".join(f"Word {at}." for at in range(3_000))), graph=False)
        _write(server, entities)
        began = time.perf_counter()
        plan = hg.resolve(dry_run=True)
    took = round(time.perf_counter() - began, 1)
    dry = {"rules": plan.joined, "calls with a model": plan.left, "seconds": took, "megabytes": peak_megabytes()}
    return {**measured, "dry_run": dry}


def _write(server: Any, entities: Sequence[Named]) -> None:
    """Write entities without vectors, each with a chunk that mentions it."""
    with driven(server) as driver:
        for at in range(0, len(entities), 5_000):
            rows = [
                {"uid": one.uid, "key": key(one.name), "name": one.name, "type": one.type, "at": one.chunks}
                for one in entities[at : at + 5_000]
            ]
            driver.execute_query(CREATE, rows=rows, corpus="names")


# Labelled pairs -------------------------------------------------------------------------------------------------


def wilson(hits: int, of: int) -> str:
    """Return a share with Wilson's interval of 95 %."""
    if not of:
        return "– (of 0)"
    z, share = 1.96, hits / of
    middle, wide = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = ((middle + sign * wide) / (1 + z * z / of) for sign in (-1, 1))
    return f"{share:.3f} [{low:.3f}, {high:.3f}] ({hits} of {of})"


def labelled(path: Path, exported: Sequence[Path]) -> dict[str, Any]:
    """Return precision and recall by method, of all pairs and of the hard ones."""
    pairs = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    by_text: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for pair in pairs:
        by_text[pair["text"]].append(pair)
    ties = [tie for file in exported for tie in json.loads(file.read_text("utf-8")) if tie["kind"] == "same"]
    found: dict[str, list[bool]] = defaultdict(list)
    ordered = [pair for some in by_text.values() for pair in some]
    for some in by_text.values():
        entities = _entities(some)
        ruled = [one.ends for one in joined(entities, decided=())]
        near = {one.ends for one in by_names(entities).best()}
        close = _together(tuple(key(tie[end]) for end in ("a", "b")) for tie in ties)
        together = _together(ruled)
        for pair in some:
            a, b = (key(pair[end]) for end in ("a", "b"))
            found["rules"].append(together(a, b))
            found["candidates"].append(a == b or (min(a, b), max(a, b)) in near)  # or one entity in any case
            found["WRatio"].append(fuzz.WRatio(pair["a"], pair["b"], processor=default_process) >= 80)
            found["decisions"].append(close(a, b))
    if not exported:
        del found["decisions"]
    return {name: _scores(ordered, said) for name, said in found.items()}


def _entities(pairs: Iterable[dict[str, Any]]) -> list[Named]:
    """Return the entities of the pairs of a text: a person, unless the pair has a type."""
    found = {}
    for pair in pairs:
        for end in ("a", "b"):
            kind = pair.get(f"type_{end}") or "person"
            found[key(pair[end])] = Named(uid=key(pair[end]), name=pair[end], type=kind, chunks=1)
    return list(found.values())


def _together(ties: Iterable[tuple[str, ...]]) -> Callable[[str, str], bool]:
    """Return whether ties, at any distance, join two."""
    of: dict[str, str] = {}

    def root(one: str) -> str:
        while (above := of.get(one, one)) != one:
            one = above
        return one

    for a, b in ties:
        of[root(a)] = root(b)
    return lambda a, b: root(a) == root(b)


def _scores(pairs: Sequence[dict[str, Any]], said: Sequence[bool]) -> dict[str, str]:
    """Return precision and recall, and the pairs that were wrongly joined."""
    scores: dict[str, Any] = {}
    for name, some in (("all", pairs), ("hard", [pair for pair in pairs if pair.get("hard")])):
        chosen = {id(pair) for pair in some}
        right = [(yes, pair["same"]) for pair, yes in zip(pairs, said, strict=True) if id(pair) in chosen]
        hits = sum(yes and same for yes, same in right)
        scores[f"precision, {name}"] = wilson(hits, sum(yes for yes, _ in right))
        scores[f"recall, {name}"] = wilson(hits, sum(same for _, same in right))
    wrong = [(pair["text"], pair["a"], pair["b"]) for pair, yes in zip(pairs, said, strict=True) if yes > pair["same"]]
    return {**scores, "wrong": wrong[:30]}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    made = {name: commands.add_parser(name) for name in ("decisions", "kills", "names", "labelled")}
    for name, number in (("decisions", 10_000), ("kills", 30), ("names", 639_500)):
        made[name].add_argument("--number", type=int, default=number)
        made[name].add_argument("--seed", type=int, default=46)
    made["names"].add_argument("--texts", type=Path, required=True, help="folder of .txt files")
    of_labels = made["labelled"]
    of_labels.add_argument("pairs", type=Path)
    of_labels.add_argument("--decisions", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    if options.command == "decisions":
        done = decisions(options.number, options.seed)
    elif options.command == "kills":
        done = kills(options.number, options.seed)
    elif options.command == "names":
        done = names(options.number, options.texts, options.seed)
    else:
        done = labelled(options.pairs, options.decisions)
    print(json.dumps(done, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
