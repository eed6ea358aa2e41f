"""First stage of the build: where episodes begin (section 3.1 of the paper, boundary detection).

A unit is a window of messages. Windows are kept as earlier builds made them, so that new messages are a window of their
own and earlier borders stay.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Unit
from hgmem.errors import UsageError
from hgmem.services import Services
from hgmem.systems.hypermem.dialogues import Said, dialogues, of_plain
from hgmem.systems.hypermem.recipes import HyperMemConfig
from hgmem.systems.hypermem.tasks import DetectBoundary, DivideMessages

STAGE = "segments"
MASKED_FROM = 5  # with more messages in the buffer, its last one is hidden from the call (official code's smart mask)
_FEWEST = 2  # messages of a conversation before the first that is asked about (official code)


def windows(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the windows of each conversation, each after the one before it."""
    found = dialogues(reading.chunks())
    if not found:
        raise UsageError(
            f"corpus {reading.services.corpus!r} has no conversations: add one (`hgmem index --conversations FILE`, "
            "Conversation in Python), or choose a system for documents"
        )
    known = {key: output.value["last"] for key, output in reading.outputs(STAGE).items()}
    for dialogue in found:
        before: list[str] = []
        for window in _windows(dialogue.document, dialogue.messages, known, size=config.window):
            key = unit_key(dialogue.document, window[0])
            yield Unit(
                key=key,
                values={"messages": [said.plain for said in window], "conversation": dialogue.document},
                sources=[chunk for said in window for chunk in said.chunks],
                after=before,
            )
            before = [key]


def unit_key(document: str, first: Said) -> str:
    """Return the key of what begins at a message of a conversation (uid)."""
    return f"{document}/{first.id}"


def _windows(document: str, messages: Sequence[Said], known: dict[str, str], *, size: int) -> Iterator[Sequence[Said]]:
    """Yield windows: those that an earlier build made, as far as their messages exist, and new ones between them."""
    place = {said.id: at for at, said in enumerate(messages)}
    begin = 0
    while begin < len(messages):
        last = place.get(known.get(unit_key(document, messages[begin]), ""), -1)
        end = last + 1
        if not begin <= last < begin + size:  # new: it ends at its size, or where the next known one begins
            limit = min(begin + size, len(messages))
            end = next((at for at in range(begin + 1, limit) if unit_key(document, messages[at]) in known), limit)
        yield messages[begin:end]
        begin = end


def make(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Find the messages of a window at which an episode begins. The output tells them, and what is still open."""
    window = [of_plain(value) for value in unit.values["messages"]]
    earlier: dict[str, Any] = before[0].value if before else {"open": [], "held": 0}
    history = [of_plain(value) for value in earlier["open"]]
    divide = _each if config.calls == "each" else _together
    starts, history, held = divide(services, config, window, (history, earlier["held"]))
    if not before:
        starts = [window[0].id, *(id_ for id_ in starts if id_ != window[0].id)]
    shown = history[-config.longest_episode :]
    return Made(output={"starts": starts, "open": [said.plain for said in shown], "held": held, "last": window[-1].id})


def _together(
    services: Services, config: HyperMemConfig, window: Sequence[Said], earlier: tuple[list[Said], int]
) -> tuple[list[str], list[Said], int]:
    """Divide a window by one call. An episode that grows too long is closed at the longest pause."""
    history, held = earlier
    task = DivideMessages(earlier=tuple(history), messages=tuple(window), longest=config.longest_episode)
    wanted = {at for at in services.reply(task).starts if 0 <= at < len(window) and (at or history)}
    starts: list[str] = []
    for at, said in enumerate(window):
        if (at in wanted and held) or held >= config.longest_episode:
            starts.append(said.id)
            history, held = [], 0
        history, held = [*history, said], held + 1
    return starts, history, held


def _each(
    services: Services, config: HyperMemConfig, window: Sequence[Said], earlier: tuple[list[Said], int]
) -> tuple[list[str], list[Said], int]:
    """Ask about each message whether an episode ends before it (paper, section 3.1)."""
    history, before = earlier
    starts: list[str] = []
    for at, said in enumerate(window):
        if before or at >= _FEWEST:
            masked = len(history) > MASKED_FROM
            shown = history[:-1] if masked else history
            if services.reply(DetectBoundary(history=tuple(shown), message=said)).should_end:
                kept = [history[-1]] if masked else []
                starts.append((kept or [said])[0].id)
                history = kept
        history = [*history, said]
    return starts, history, len(history)


def episodes_of(messages: Sequence[Said], outputs: Sequence[Any]) -> list[list[Said]]:
    """Return the messages of each episode: they begin where the windows (outputs in order) say.

    Messages behind the last window that was divided are in none.
    """
    starts = {id_ for value in outputs for id_ in value["starts"]}
    last = outputs[-1]["last"] if outputs else None
    found: list[list[Said]] = []
    for said in messages:
        if last is None:
            break
        if not found or said.id in starts:
            found.append([])
        found[-1].append(said)
        if said.id == last:
            break
    return found
