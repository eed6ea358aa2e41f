"""Borders that contents decide: runs cover the sequence, fit, and stay where they were when something else changes."""

import random
import statistics

import pytest

from hgmem.builds.chunk_runs import Piece, runs


def pieces(rng: random.Random, number: int, *, opening: int = 1) -> list[Piece]:
    return [Piece(tokens=rng.randint(50, 200), name=f"{rng.random()}", opens=at % opening == 0) for at in range(number)]


def contents(found: list[Piece], most: int) -> set[tuple[str, ...]]:
    return {tuple(piece.name for piece in found[run.start : run.stop]) for run in runs(found, most=most)}


@pytest.mark.parametrize("number", [0, 1, 2, 7, 400])
def test_runs_cover_the_sequence_in_order_and_fit(number: int) -> None:
    found = pieces(random.Random(number), number)
    cut = runs(found, most=1_000)
    assert [at for run in cut for at in run] == list(range(number))
    assert all(sum(found[at].tokens for at in run) <= 1_000 for run in cut)


def test_a_piece_that_is_too_long_is_a_run_by_itself() -> None:
    assert runs([Piece(tokens=9, name="a"), Piece(tokens=5_000, name="b"), Piece(tokens=9, name="c")], most=100) == [
        range(1),
        range(1, 2),
        range(2, 3),
    ]


def test_runs_begin_where_pieces_open_one_if_some_do() -> None:
    found = pieces(random.Random(3), 300, opening=5)
    assert all(found[run.start].opens for run in runs(found, most=3_000))
    closed = [Piece(tokens=100, name=str(at), opens=False) for at in range(50)]
    assert max(map(len, runs(closed, most=1_000))) <= 10


def test_runs_are_neither_crumbs_nor_all_full() -> None:
    found = pieces(random.Random(5), 2_000)
    sizes = [sum(found[at].tokens for at in run) for run in runs(found, most=6_000)]
    assert 3_000 < statistics.mean(sizes) < 5_000
    assert min(sizes) >= 1_000


def test_an_insertion_a_change_and_a_deletion_move_only_the_borders_around_them() -> None:
    rng = random.Random(11)
    found = pieces(rng, 1_500)
    before = contents(found, 6_000)
    changed = []
    for _ in range(60):
        at = rng.randrange(len(found))
        new = Piece(tokens=rng.randint(50, 200), name=f"new {rng.random()}")
        inserted, replaced, deleted = [*found], [*found], [*found]
        inserted.insert(at, new)
        replaced[at] = new
        del deleted[at]
        changed += [len(contents(other, 6_000) - before) for other in (inserted, replaced, deleted)]
    assert statistics.median(changed) <= 2
    assert statistics.mean(changed) < 3
