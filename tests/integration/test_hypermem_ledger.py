"""HyperMem's ledger on a real Neo4j: what changed and since when, whatever the order in which messages arrive."""

from datetime import datetime, timedelta

from dumping import dump
from test_hypermem import nodes

from hgmem import Conversation, HGMem, Message

START = datetime(2024, 3, 1, 9, 0)
SAID = (
    ("Ann", "I work for Norden Ferries.", 0),
    ("Bo", "The wedding of Liv is on 5 May.", 1),
    ("Ann", "I live in Lund.", 2),
    ("Ann", "I quit Norden Ferries yesterday.", 10),
    ("Bo", "Actually, the wedding of Liv is on 12 May.", 11),
    ("Ann", "I moved to Malmö on Saturday.", 20),
    ("Ann", "I am working at Sundlink now.", 30),
)
CHANGES = {
    ("Ann quit Norden Ferries yesterday.", "Ann works for Norden Ferries."): "2024-03-10",
    ("Bo: Actually, the wedding of Liv is on 12 May.", "Bo: The wedding of Liv is on 5 May."): "2024-03-12T09:00:00",
    ("Ann moved to Malmö on Saturday.", "Ann lives in Lund."): "2024-03-16",
    ("Ann is working at Sundlink now.", "Ann works for Norden Ferries."): "2024-03-31T09:00:00",
}


def said(*numbers: int) -> list[Message]:
    """Return the messages of these numbers, all by default."""
    chosen = [SAID[at] for at in numbers] if numbers else SAID
    return [Message(who, text, START + timedelta(days=day), id=f"m{day}") for who, text, day in chosen]


def changes(client: HGMem) -> dict[tuple[str, str], str]:
    """Return what supersedes what, with the time from which it holds."""
    facts = {uid: one["content"] for uid, one in nodes(client, "Fact").items()}
    ties = dump(client.settings, client.corpus).joined("SUPERSEDES")
    assert all(tie["guess"] for _, _, tie in ties)
    return {(facts[source], facts[target]): tie["since"] for source, target, tie in ties}


def test_what_changed_is_known_with_the_time_from_which_it_holds(client: HGMem) -> None:
    client.add(Conversation(id="talk", messages=said()), graph=False)
    client.build("hypermem")
    assert changes(client) == CHANGES
    assert client.check().findings == ()
