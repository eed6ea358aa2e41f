"""Deciders that are killed at random moments: each class is that of the decisions that stand, at any time."""

import random
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from hgmem import Document, HGMem
from hgmem.graph.resolution import wrong_classes

DECIDE = """
import random, sys
from hgmem import Document, HGMem

draw = random.Random(int(sys.argv[2]))
people = [f"Captain Rhee{letter}" for letter in "abcdefghijkl"]
with HGMem.open(sys.argv[1], resolve=False) as client:
    print("begun", flush=True)
    while True:
        a, b = draw.sample(people, 2)
        kind = draw.choice(["same", "same", "same", "different", "undo", "delete", "add"])
        try:
            if kind in ("same", "different"):
                getattr(client, kind)(a, b)
            elif kind == "undo":
                client.undo(draw.choice(client.decisions()).decision.uid)
            elif kind == "delete":
                client.delete(document=a)
            else:
                client.add(Document(id=a, text=f"{a} met {b} in Tamswell."))
        except Exception as error:
            if type(error).__module__ != "hgmem.errors" and not isinstance(error, IndexError):
                raise
        print(kind, flush=True)
"""


@pytest.mark.slow
def test_a_kill_leaves_no_wrong_class(client: HGMem, environment: dict[str, str]) -> None:
    people = [f"Captain Rhee{letter}" for letter in "abcdefghijkl"]
    documents = [Document(id=name, text=f"{name} met {other} in Tamswell.") for name, other in pairwise(people)]
    client.add(documents)
    draw, done = random.Random(46), 0
    for kill in range(12):
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", DECIDE, client.corpus, str(2 * kill + at)],
                env=environment, stdout=subprocess.PIPE, text=True,
            )
            for at in range(2)
        ]  # fmt: skip
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "begun\n"
        time.sleep(draw.uniform(0.2, 1.5))
        for process in processes:
            process.kill()
            done += len(process.communicate()[0].splitlines())
        assert wrong_classes(client._database, corpus=client.corpus) == [], kill
    assert done > 20
    client.add(documents)
    assert {one.state for one in client.decisions()} <= {"stands", "void"}
    assert client.check().findings == ()
