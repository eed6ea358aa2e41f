"""The findings that memory points stand for, through revisions and merges."""

from hgmem.memory.recording import MemoryPoints
from hgmem.systems.hgmem.investigation import in_turn
from hgmem.values.records import MemoryPoint, Operation, OperationKind, Step


def point(uid: str, *chunks: str) -> MemoryPoint:
    return MemoryPoint(uid=uid, description=uid, entities=(), chunks=chunks)


def operation(kind: OperationKind, uid: str, *parts: str) -> Operation:
    return Operation(kind=kind, point=uid, parts=parts)


def findings(points: list[MemoryPoint], *operations: Operation, of: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the findings of a point: uid and chunks each."""
    step = Step(number=1, question="Who?", strategy="global", operations=operations)
    lineages = MemoryPoints.of(points, [step])
    (found,) = lineages.findings([lineages.by_uid[of]])
    return list(found.items())


def test_an_inserted_point_is_its_own_finding() -> None:
    assert findings([point("a", "c1", "c2")], operation("insert", "a"), of="a") == [("a", ("c1", "c2"))]


def test_a_revision_is_a_finding_by_the_chunks_that_it_brought_and_none_without_any() -> None:
    points = [point("a", "c1"), point("b", "c1"), point("c", "c1", "c2")]
    operations = (operation("insert", "a"), operation("revise", "b", "a"), operation("revise", "c", "b"))
    assert findings(points, *operations, of="b") == [("a", ("c1",))]
    assert findings(points, *operations, of="c") == [("a", ("c1",)), ("c", ("c2",))]


def test_a_merge_of_merges_stands_for_all_that_was_inserted_in_order_of_birth() -> None:
    points = [point("a", "c1"), point("b", "c2"), point("c", "c1", "c3"), point("ab", "c1", "c2")]
    points.append(point("all", "c1", "c3", "c2"))
    operations = (
        *(operation("insert", uid) for uid in "abc"),
        operation("merge", "ab", "b", "a"),
        operation("merge", "all", "c", "ab"),
    )
    assert findings(points, *operations, of="all") == [("a", ("c1",)), ("b", ("c2",)), ("c", ("c1", "c3"))]


def test_findings_that_several_points_stand_for_are_the_same_beside_their_parts() -> None:
    points = [point("a", "c1"), point("b", "c2"), point("ab", "c1", "c2")]
    step = Step(number=1, question="Who?", strategy="global", operations=(operation("merge", "ab", "a", "b"),))
    first, _, both = MemoryPoints.of(points, [step]).findings(points)
    assert first == {"a": ("c1",)}
    assert list(both.items())[:1] == list(first.items())


def test_a_point_without_known_parts_or_without_chunks_does_no_harm() -> None:
    merge = operation("merge", "ab", "gone", "b")
    assert findings([point("b"), point("ab", "c1")], merge, of="ab") == [("ab", ("c1",))]
    assert findings([point("ab", "c1")], of="ab") == [("ab", ("c1",))]
    assert findings([point("a")], operation("insert", "a"), of="a") == []


def test_a_point_revised_very_often_is_walked_to_its_first_version() -> None:
    points = [point(f"p{at}", "c") for at in range(3_000)]
    operations = [operation("revise", f"p{at}", f"p{at - 1}") for at in range(1, 3_000)]
    assert findings(points, *operations, of="p2999") == [("p0", ("c",))]


def test_every_list_gives_its_first_before_any_gives_its_second() -> None:
    assert in_turn([["a", "b", "c"], [], ["d", "a", "e"], ["f"]]) == ["a", "d", "f", "b", "c", "e"]
    assert in_turn([]) == []
