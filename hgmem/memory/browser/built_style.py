"""Rules of the style for what systems build: colour and caption of each kind of rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.errors import UsageError

PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
PALETTE = ("#7FB069", "#C98BB9", "#5FA8A0", "#D9A05B", "#8E9AD0", "#B5A642")  # of kinds without a colour, in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """How a kind of built rows (a label) is drawn: the property that is its caption, and a colour such as `#7FB069`."""

    label: str
    property: str = "text"
    colour: str = ""


def check_captions(system: str, captions: Sequence[Caption]) -> None:
    """Raise `UsageError` for a caption whose property or colour cannot stand in a style."""
    for one in captions:
        if not PROPERTY.fullmatch(one.property):
            raise UsageError(
                f"system {system!r} cannot be loaded: the caption {one.property!r} of kind {one.label!r} is not the "
                "name of a property"
            )
        if one.colour and not COLOUR.fullmatch(one.colour):
            raise UsageError(
                f"system {system!r} cannot be loaded: invalid colour {one.colour!r} of kind {one.label!r}: use, for "
                "example, '#7FB069'"
            )


def styled(style: str, captions: Sequence[Caption]) -> str:
    """Return the style with a rule for each kind."""
    rules = (_rule(one, PALETTE[number % len(PALETTE)]) for number, one in enumerate(captions))
    return "".join([style, *rules])


def _rule(one: Caption, usual: str) -> str:
    colour = one.colour or usual
    own = "" if one.property == "name" else f"{{{one.property}}}"
    return (
        f"node.{one.label} {{\n  diameter: 60px;\n  color: {colour};\n  border-color: {_darker(colour)};\n"
        f'  text-color-internal: #1F2329;\n  caption: "{{name}}{own}";\n}}\n'
    )


def _darker(colour: str) -> str:
    return "#" + "".join(f"{int(colour[at : at + 2], 16) * 3 // 4:02X}" for at in (1, 3, 5))
