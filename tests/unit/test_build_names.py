"""Names of kinds, relationship types and stages that a system's build may not have."""

import pytest

from hgmem.builds.stages import Build, BuiltKind, Stage, check_names
from hgmem.errors import UsageError


def build(kinds: list[str], *, relationships: list[str] | None = None, stages: list[str] | None = None) -> Build[None]:
    """Return a build with these names."""
    made = [Stage(name=name, units=lambda *_: (), make=lambda *_, **__: None) for name in stages or ["one"]]
    return Build(kinds=[BuiltKind(name=name) for name in kinds], stages=made, relationships=relationships or [])


def test_names_of_their_own_are_taken() -> None:
    check_names(build(["Topic", "Gist"], relationships=["IN_TOPIC", "CONDENSES"], stages=["gists", "topics"]))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (build(["Chunk"]), "hgmem uses the label 'Chunk' itself: rename that kind"),
        (build(["Built"]), "hgmem uses the label 'Built' itself: rename that kind"),
        (build(["PersonEntity"]), "hgmem uses the label 'PersonEntity' itself: rename that kind"),
        (build(["topic"]), "its kind 'topic' is no label: use at most 40 letters, a capital first"),
        (build(["T`) DETACH DELETE (n"]), "is no label: use at most 40 letters, a capital first"),
        (build(["Topic"], relationships=["CITES"]), "hgmem uses the relationship type 'CITES' itself: rename it"),
        (build(["Topic"], relationships=["in topic"]), "needs at most 40 capital letters and underscores"),
        (build(["Topic", "Topic"]), "it has two kinds 'Topic': rename one"),
        (build(["Topic"], stages=["one", "one"]), "it has two stages 'one': rename one"),
        (build(["Topic"], relationships=["A", "A"]), "it has two relationship types 'A': rename one"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(made: Build[None], why: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_names(made)
    assert why in str(refused.value)
