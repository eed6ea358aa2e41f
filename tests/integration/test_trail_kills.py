"""A learner that is killed at random moments: each learning is there whole or not at all, and the rest can go on."""

import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from walking import Guide, nodes, walked_town

from hgmem import HGMem

QUESTION = "Which key did Anna give away last?"
KEY = "Anna gave the key number 2"
LEARN = """
import sys
from hgmem import HGMem

with HGMem.open(sys.argv[1]) as client:
    for memory in sys.argv[2:]:
        print(memory, client.remindrag.learn(memory=memory)[0].number, flush=True)
"""


@pytest.mark.slow
def test_a_kill_leaves_a_learning_whole_or_not_at_all(
    open_client: Callable[..., HGMem], environment: dict[str, str]
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    ways = {"quotes": 0, "fill": False, "trails": False}
    asked = [client.ask(f"{QUESTION} Number {at}.", system="remindrag", settings=ways) for at in range(60)]
    left = [answer.memory for answer in asked]
    draw = random.Random(27)
    for kill in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", LEARN, client.corpus, *left], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        told = [process.stdout.readline().split() for _ in range(draw.randint(1, 5))]
        time.sleep(draw.random() / 20)  # some are killed while a learning is under way
        process.kill()
        told += [line.split() for line in process.stdout.readlines() if line.endswith("\n")]
        process.wait()

        learnt = {row["memory"]: row["number"] for row in nodes(client, "Learning")}
        assert {memory: int(number) for memory, number in told}.items() <= learnt.items(), kill
        assert sorted(learnt.values()) == list(range(1, len(learnt) + 1))
        assert client.check().findings == ()  # each trail is what whole learnings made of it
        left = [memory for memory in left if memory not in learnt]
    assert left
    for memory in left:
        client.remindrag.learn(memory=memory)
    assert len(nodes(client, "Learning")) == len(asked)
    assert client.remindrag.unlearn(everything=True).learnings == len(asked)
    assert nodes(client, "Trail") == []
