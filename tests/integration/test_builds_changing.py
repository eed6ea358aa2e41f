"""A build that follows random changes of the corpus equals one from scratch. The system is that of tests/toy/."""

import random

import pytest
from dumping import dump
from test_builds import WORDS, built, document

from hgmem import HGMem

pytestmark = [pytest.mark.usefixtures("toy"), pytest.mark.slow]

CHANGES, COMPARED = 200, 20  # compared after every 20th change
SEED = 20


def change(client: HGMem, draw: random.Random, held: set[int], at: int) -> None:
    """Add, change or delete a document, and make the build anew after some of the changes only."""
    number = draw.randrange(30)
    if number in held and draw.random() < 0.4 and len(held) > 3:
        client.delete(document=f"d{number}")
        held.discard(number)
    else:
        text = (
            f"The {draw.choice(WORDS)} of house {number} was renamed change{at} by the pier." if number in held else ""
        )
        client.add(document(number, text=text))
        held.add(number)
    if draw.random() < 0.7:
        client.build("toy")


def test_two_hundred_random_changes_end_in_the_build_from_scratch(client: HGMem) -> None:
    draw, held = random.Random(SEED), set(range(8))
    client.add([document(number) for number in sorted(held)])
    client.build("toy")
    for at in range(1, CHANGES + 1):
        change(client, draw, held, at)
        if at % COMPARED == 0:
            client.build("toy")
            before = dump(client.settings, client.corpus, times=True)
            assert client.build("toy").made == 0
            after = dump(client.settings, client.corpus, times=True)
            assert [labels for uid, (labels, node) in after.nodes.items() if (labels, node) != before.nodes[uid]] == [
                ["Build"]  # its lease
            ]
            followed = built(client)
            client.delete(system="toy")
            client.build("toy")
            assert built(client) == followed, f"after {at} changes"
