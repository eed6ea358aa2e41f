"""What prompts of MemoRAG show of memory, and what of them a server's prompt cache serves."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from playing import by_task, playing
from test_gists import SMALL, document, opened, paragraphs, scripted
from typer.testing import CliRunner
from wire import Answered, Asked, Said, WireServer, words

from hgmem import HGMem
from hgmem.cli import app
from hgmem.errors import BadReplyError
from hgmem.models.reply import TextReply
from hgmem.retrieval.clues import CluesReply
from hgmem.text.tokens import count


@pytest.fixture
def deep(open_client: Callable[..., HGMem]) -> HGMem:
    """A client on a pyramid of more than two levels, whose model looks into all gists that it sees."""
    model = scripted(
        gist=lambda task: TextReply(text="Bells rang in the town. " * 6),
        clues=lambda task: CluesReply(spans=("Bells rang at night.",), look=tuple(range(99))),
    )
    client = opened(open_client, model=model)
    client.add([document(name, paragraphs(name, 60)) for name in ("Arbor", "Briar")], graph=False)
    client.add([document(name, [f"In {name} a bell was sold."]) for name in ("Clay", "Dell")], graph=False)
    client.build("gists", settings=SMALL)
    return client


def clue_tasks(client: HGMem, **options: Any) -> list[Any]:
    model: Any = client.model
    model.tasks.clear()
    client.ask("Where?", system="memorag", **options)
    return [task for task in model.tasks if task.name == "clues"]


@pytest.mark.parametrize("filters", [{}, {"kind": ["Arbor", "Clay"]}])
def test_what_prompts_show_of_memory_stays_within_the_budget(deep: HGMem, filters: dict[str, list[str]]) -> None:
    lowest, *_, top = deep.gists.levels()
    assert top.level > 2
    looks: dict[int, int] = {}
    for budget in (top.tokens, 100, 150, 200, 250, 300, 400, 500, 900, lowest.tokens - 1):
        asked = clue_tasks(deep, settings={"memory_tokens": budget}, filters=filters)
        shown = [sum(count(one.text) for one in (*task.memory, *task.parts)) for task in asked]
        assert max(shown) <= budget
        assert shown == sorted(set(shown))  # each look shows more
        looks[budget] = len(shown) - 1
    assert max(looks.values()) >= 1


def test_the_lowest_level_is_shown_where_it_fits_and_nothing_is_looked_into(deep: HGMem) -> None:
    lowest = deep.gists.levels()[0]
    (task,) = clue_tasks(deep, settings={"memory_tokens": lowest.tokens})
    assert (len(task.memory), task.look) == (lowest.gists, False)


def test_without_looks_all_of_the_budget_shows_the_most_detailed_level(deep: HGMem) -> None:
    _, second, *_ = deep.gists.levels()
    budget = {"memory_tokens": second.tokens}
    (task,) = clue_tasks(deep, settings={**budget, "descents": 0})
    assert len(task.memory) == second.gists
    each = clue_tasks(deep, settings={**budget, "calls": "paper"})
    assert {len(task.memory) for task in each} == {second.gists}
    first, *more = clue_tasks(deep, settings=budget)
    assert len(first.memory) < second.gists
    assert more


@dataclass
class PrefixCache:
    """A model's server that caches prompts: of each, it has what the prompt has in common with an earlier one."""

    seen: list[list[str]] = field(default_factory=list)
    answer: Callable[[Asked], Answered] = field(
        default_factory=lambda: playing(
            {
                "gist": "Bells rang in the town, and nobody said why.",
                "clues": CluesReply(draft="A bell rang.", spans=("The anchor stood by the engine.",)),
            }
        )
    )

    def __call__(self, asked: Asked) -> Answered:
        said, prompt = self.answer(asked), f"{asked.system}\n{asked.user}".split()
        shared = max((_same(prompt, other) for other in self.seen), default=0)
        self.seen.append(prompt)
        return replace(said, cached=shared) if isinstance(said, Said) else said


def _same(one: list[str], other: list[str]) -> int:
    """Return how many words two prompts have in common from the first on."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


@pytest.fixture
def caching() -> Iterator[WireServer]:
    with WireServer(PrefixCache()) as served:
        yield served


def test_a_servers_prompt_cache_holds_the_gists_and_the_usage_says_so(
    open_client: Callable[..., HGMem], caching: WireServer, environment: Mapping[str, str], tmp_path: Path
) -> None:
    settings = {"openai_base_url": caching.base_url, "openai_api_key": "secret", "cache": tmp_path}
    client = opened(open_client, model="test-model", **settings)
    client.add([document(name, paragraphs(name, 20)) for name in ("Arbor", "Briar")], graph=False)
    client.build("gists", settings=SMALL)
    shown = {"memory_tokens": 5_000}
    before = client.ask("Where did the anchor of Arbor stand?", system="memorag", settings=shown)

    env = {**environment, "HGMEM_MODEL": "test-model", "OPENAI_BASE_URL": caching.base_url, "OPENAI_API_KEY": "secret"}
    asked = ("ask", "Who sold the bell?", "-c", client.corpus, "--system", "memorag", "--set", "memory_tokens=5000")
    done = CliRunner().invoke(app, [*asked, "--json"], env={**env, "HGMEM_CACHE": str(tmp_path)})
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)

    first, second = by_task(caching.requests, "clues")
    gists = second.user[: second.user.index("</memory>")]
    assert gists.count("Bells rang") == client.gists.levels()[0].gists > 3
    assert (first.system, first.user[: len(gists)]) == (second.system, gists)
    cached = answer["usage"]["tokens"]["clues"]["cached"]
    assert words(second.system) + words(gists) <= cached < answer["usage"]["tokens"]["clues"]["prompt"]
    assert before.usage.tokens["clues"].get("cached", 0) < words(second.system) + words(gists)
    assert caching.cached_tokens >= answer["usage"]["cached_tokens"] >= cached
    assert answer["steps"][0]["usage"]["tokens"]["clues"]["cached"] == cached

    (step,) = client.memory(answer["memory"]).steps
    assert step.usage.tokens["clues"]["cached"] == cached
    told = CliRunner().invoke(app, ["memory", "show", answer["memory"], "--json"], env=env)
    assert json.loads(told.stdout)["steps"][0]["usage"]["cached_tokens"] == cached
    spoken = CliRunner().invoke(app, ["--verbose", *asked], env={**env, "HGMEM_CACHE": str(tmp_path)})
    assert "cached" in spoken.stdout, spoken.output


@pytest.mark.parametrize(("recipe", "set_by_hand"), [("paper", {}), ("lite", {}), ("paper", {"max_tokens": 2_048})])
def test_the_papers_recipe_decodes_greedily_and_takes_a_truncated_reply_as_its_clues(
    open_client: Callable[..., HGMem], recipe: str, set_by_hand: dict[str, int]
) -> None:
    def said(asked: Asked) -> Answered:
        if "<memory>" in asked.user:
            kind = "spans" if '{"spans"' in asked.user else "queries"
            return Said(f'{{"{kind}": ["Where did the {kind} of Arbor stand?", "What cut the la', finish="length")
        return Said("The anchor stood by the engine [1].")

    with WireServer(said) as served:
        settings = {"openai_base_url": served.base_url, "openai_api_key": "secret", "cached_tasks": []}
        client = opened(open_client, model="test-model", sampling={"clues": set_by_hand}, **settings)
        client.add([document("Arbor", paragraphs("Arbor", 20))], graph=False)
        client.build("gists", recipe=recipe, settings={"passage_tokens": 128})
        if set_by_hand:
            with pytest.raises(BadReplyError, match="truncated at 4,096 tokens: set HGMEM_MAX_TOKENS higher"):
                client.ask("Where?", system="memorag", recipe=recipe)
            return
        answer = client.ask("Where?", system="memorag", recipe=recipe)
        client.ask("Where?", system="memorag", recipe="question-only")
    asked = [task for task in served.requests if "temperature" in task.body]
    assert {task.body["temperature"] for task in asked[:-1]} == {0}
    assert asked[-1].body["temperature"] == client.settings.temperature
    clues = [task for task in asked if "<memory>" in task.user]
    assert [task.body["max_tokens"] for task in clues] == [128, 128]
    assert all("has at most 128 tokens" in task.user for task in clues)
    searched = [one.subquery.text for one in answer.steps[0].retrieved]
    kept = ["Where did the spans of Arbor stand?", "What cut the la", "Where did the queries of Arbor stand?"]
    assert searched == ["Where?", *kept]
    assert not any("chunk_tokens" in note for note in answer.notes)


def test_a_limit_of_clues_that_leaves_none_names_the_remedy(open_client: Callable[..., HGMem]) -> None:
    def said(asked: Asked) -> Answered:
        return Said("", finish="length") if "<memory>" in asked.user else Said("Nobody knows.")

    with WireServer(said) as served:
        client = opened(open_client, model="test-model", openai_base_url=served.base_url, openai_api_key="secret")
        client.add([document("Arbor", paragraphs("Arbor", 20))], graph=False)
        client.build("gists", recipe="paper", settings={"passage_tokens": 128})
        with pytest.raises(
            BadReplyError, match=r"truncated at 128 tokens: give the task more max_tokens by HGMEM_SAMPLI"
        ):
            client.ask("Where?", system="memorag", recipe="paper")


@pytest.mark.parametrize("size", [64, 512, 600])
def test_a_note_names_chunks_that_are_larger_than_the_recipes(open_client: Callable[..., HGMem], size: int) -> None:
    client = open_client(chunk_tokens=size, chunk_overlap=0)
    client.add([document("Arbor", paragraphs("Arbor", 20))], graph=False)
    client.build("gists", recipe="paper")
    notes = client.ask("Where did the anchor stand?", system="memorag", recipe="paper").notes
    told = (
        "chunk_tokens=512, but chunks of corpus .* have up to 600: .* HGMEM_CHUNK_TOKENS=512 and HGMEM_CHUNK_OVERLAP=0"
    )
    assert [bool(re.match(told, note)) for note in notes] == ([True] if size > 512 else [])
    assert not any("chunk_tokens" in note for note in client.ask("Where?", system="memorag").notes)


def test_another_temperature_needs_no_other_gists(open_client: Callable[..., HGMem]) -> None:
    client = open_client(chunk_tokens=512, chunk_overlap=0)
    client.add([document("Arbor", paragraphs("Arbor", 20))], graph=False)
    client.build("gists", recipe="paper")
    other = {"temperature": 0.3}
    assert client.ask("Where?", system="memorag", recipe="paper", settings=other).notes == ()
    [note] = client.ask("Where?", system="memorag", recipe="paper", settings={**other, "ratio": 8}).notes
    assert note.startswith("ratio=8 is read when building")
