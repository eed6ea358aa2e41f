"""The part of a memory that goes into a prompt."""

from hypothesis import given
from hypothesis import strategies as st

from hgmem.retrieval.rendering import fit_points, fits, size
from hgmem.values.graph_elements import Entity
from hgmem.values.records import MemoryPoint

NAMES = st.text(max_size=12)
POINTS = st.lists(
    st.builds(
        lambda text, names, born: (text, names, born),
        st.one_of(st.text(max_size=60), st.text(alphabet="ab 1²我\t.", max_size=60)),
        st.lists(NAMES, max_size=3),
        st.integers(1, 4),
    ),
    max_size=12,
)


def points(drawn: list[tuple[str, list[str], int]]) -> list[MemoryPoint]:
    return [
        MemoryPoint(
            uid=f"p{at}",
            description=text,
            entities=tuple(Entity(uid=f"e{name}", name=name) for name in names),
            born=born,
        )
        for at, (text, names, born) in enumerate(drawn)
    ]


@given(drawn=POINTS, tokens=st.integers(0, 120), targets=st.sets(st.sampled_from(["p0", "p1", "p5"])))
def test_what_is_shown_is_what_fits_in_the_order_of_targets_age_and_nearness(
    drawn: list[tuple[str, list[str], int]], tokens: int, targets: set[str]
) -> None:
    given_ = points(drawn)
    nearness = [len(point.description) % 7 / 7 for point in given_]
    found = fit_points(given_, tokens=tokens, near=lambda _: nearness, targets=targets)

    order = sorted(given_, key=lambda one: (one.uid not in targets, -one.born, -nearness[given_.index(one)]))
    wanted: list[MemoryPoint] = []
    left = tokens
    for point in order:
        if size(point) <= left or not wanted:
            wanted.append(point)
            left -= size(point)
    whole = sum(map(size, given_)) <= tokens
    assert fits(given_, tokens=tokens) == whole
    assert list(found.points) == (given_ if whole else sorted(wanted, key=given_.index))
    assert found.more == len(given_) - len(found.points)
