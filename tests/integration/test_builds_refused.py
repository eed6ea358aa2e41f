"""Builds that cannot be made, fail in part, or are made twice at once. The system is that of tests/toy/."""

import threading
from collections.abc import Callable

import pytest
from dumping import driver
from test_builds import built, document

from hgmem import HGMem, UsageError
from hgmem.errors import ConflictError, HGMemError, ModelError
from hgmem.models.reply import TextReply
from hgmem.testing import ScriptedModel
from hgmem.values.reports import BuildReport

pytestmark = pytest.mark.usefixtures("toy")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("MATCH (d:Document {corpus: $corpus}) SET d.sha256 = ''", "is being indexed, or that was cut short"),
        ("MATCH (k:Corpus {name: $corpus}) SET k.status = 'importing'", "is not ready (status importing): wait"),
    ],
    ids=["indexed", "imported"],
)
def test_a_corpus_that_is_being_written_is_not_built(client: HGMem, state: str, why: str) -> None:
    client.add(document(1))
    with driver(client.settings) as opened:
        opened.execute_query(state, corpus=client.corpus)
    with pytest.raises(UsageError) as refused:
        client.build("toy")
    assert why in str(refused.value)


def test_of_two_builds_at_once_one_is_refused_or_waits_and_nothing_is_made_twice(
    client: HGMem, open_client: Callable[..., HGMem]
) -> None:
    client.add([document(number) for number in range(12)])
    clients = [open_client(), open_client()]
    done: list[BuildReport | HGMemError] = []

    def make(one: HGMem) -> None:
        try:
            done.append(one.build("toy"))
        except HGMemError as error:
            done.append(error)

    threads = [threading.Thread(target=make, args=(one,)) for one in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reports = [one for one in done if isinstance(one, BuildReport)]
    assert all(isinstance(one, BuildReport | ConflictError) for one in done)
    assert [one.made > 0 for one in reports].count(True) == 1
    at_once = built(client)
    client.delete(system="toy")
    client.build("toy")
    assert built(client) == at_once


class Failing:
    """Sums texts up, except for those that hold a word."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked: list[str] = []

    def __call__(self, task: object) -> TextReply:
        text = str(getattr(task, "text", ""))
        self.asked.append(text)
        if self.word and self.word in text:
            raise ModelError("the model refused this text")
        return TextReply(text=" ".join(text.split()[:7]))


def test_a_unit_that_fails_is_named_kept_apart_and_made_again_only_on_request(
    open_client: Callable[..., HGMem],
) -> None:
    failing = Failing("only3")
    client = open_client(model=ScriptedModel({"sum_up": failing}))
    client.add([document(number) for number in range(6)], graph=False)
    done = client.build("toy")
    assert (done.failed, len(failing.asked)) == (1, 6)
    assert "failed: the model refused this text" in done.errors[0]
    (state,) = client.status().builds
    assert (state.status, state.units["failed"], state.rows["ToyGist"]) == ("incomplete", 1, 5)

    failing.word = ""
    assert client.build("toy").failed == 1  # known to fail with these inputs: not paid for again
    assert len(failing.asked) == 6
    assert client.build("toy", retry_failed=True).failed == 0
    assert client.status().builds[0].status == "ready"
    assert len(failing.asked) == 7


def test_a_systems_own_mistake_is_one_line_that_names_it_and_what_was_made_stays(
    client: HGMem, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.add([document(number) for number in range(4)])

    def raising(*_: object, **__: object) -> object:
        raise KeyError("group")

    monkeypatch.setattr("toy_system.build.Tie", raising)
    with pytest.raises(UsageError) as refused:
        client.build("toy")
    assert str(refused.value).startswith("system 'toy', stage 'topics' raised KeyError at unit ")
    (state,) = client.status().builds
    assert (state.status, state.rows) == ("unfinished", {"ToyGist": 4})
