"""Corrupts valid files: flips bits, deletes, repeats or moves parts, or inserts words that are hard to parse."""

from collections.abc import Sequence

from hypothesis import strategies as st

WORDS = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1a",
        b"\r",
        b'"',
        b"'",
        b"\\",
        b"\\ud83d",
        b"\\u0000",
        b"&#0;",
        b"&#xD800;",
    ),
    *("\u200f\u202e", "e\u0301", "\ufffe", "\u2028", "\U0010ffff", "\x85"),
    *(
        b"<",
        b">",
        b"<!--",
        b"<![CDATA[",
        b"<!DOCTYPE x [<!ENTITY e 'e'>]>",
        b"&e;",
        b"</body>",
        b"<?xml",
        b"<pre>",
        b"<li>",
    ),
    *(b"<<", b">>", b"[", b"]", b"{", b"}", b"null", b"NaN", b"1e999", b"-1", b"99999999999999999999", b"0 R", b"obj"),
    *(b"/Length", b"/Filter /FlateDecode", b"/Prev 0", b"stream", b"endstream", b"/Encrypt 1 0 R", b"true", b"<SEP>"),
)
ENCODED = tuple(word.encode() if isinstance(word, str) else word for word in WORDS)


@st.composite
def spoilt(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Return one of the files after one to six changes."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        put = draw(st.sampled_from([b"", *ENCODED]) | st.binary(max_size=8))
        match draw(st.sampled_from(["flip", "cut", "put", "repeat", "move", "end"])):
            case "flip" if at < len(data):
                data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
            case "cut":
                data = data[:at] + data[end:]
            case "repeat":
                data = data[:at] + data[at:end] * draw(st.sampled_from([2, 50, 3_000])) + data[end:]
            case "move":
                to = draw(st.integers(0, len(data)))
                data = data[:to] + data[at:end] + data[to:]
            case "end":
                data = data[:at]
            case _:
                data = data[:at] + put + data[end:]
    return data
