"""The system of tests/toy/, installed in this process or not."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dumping import driver

from hgmem import HGMem
from hgmem.systems.registry import _loaders
from hgmem.text.identity import built_uid, layer_key

TOY = Path(__file__).parents[1] / "toy"

LEARNT = """
MATCH (gist:ToyGist {corpus: $corpus}) WITH gist ORDER BY gist.uid LIMIT 1
MATCH (gist)-[:RESTS_ON]->(c:Chunk), (e:Entity {corpus: $corpus, memory: ''})
WITH gist, c, e ORDER BY e.uid LIMIT 1
CREATE (n:Built:ToyTopic {uid: $uid, corpus: $corpus, system: 'toy', kind: 'ToyTopic', key: 'trail', learnt: true,
                          document: '', text: '', layer_key: $layer_key, weights: [1, 2], steady: true})
CREATE (n)-[:RESTS_ON]->(gist), (n)-[:TOY_IN {weight: 0.5}]->(c), (n)-[:TOY_IN]->(e)
"""


@contextmanager
def installed() -> Iterator[Path]:
    """Install the system while the block runs, and yield its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOY)
        _loaders.cache_clear()
        try:
            yield TOY
        finally:
            patch.undo()
            _forget()


@contextmanager
def uninstalled() -> Iterator[None]:
    """Take the system away while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [path for path in sys.path if path != str(TOY)])
        _forget()
        yield
    _loaders.cache_clear()


def _forget() -> None:
    _loaders.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "toy_system"]:
        del sys.modules[name]


def learn(client: HGMem) -> None:
    """Write a row as a question would, which no unit makes: it rests on a gist, and ties a chunk to an entity."""
    uid = built_uid(client.corpus, "toy", kind="ToyTopic", key="trail")
    layer = layer_key(client.corpus, "toy", "ToyTopic")
    with driver(client.settings) as opened:
        summary = opened.execute_query(LEARNT, corpus=client.corpus, uid=uid, layer_key=layer).summary
    assert summary.counters.relationships_created == 3
