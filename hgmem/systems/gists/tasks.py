"""The task of the pyramid: write a gist of a passage, or of the gists of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.extractive.selection import diverse, nearness_to_centre
from hgmem.models.extractive.sentences import passages, quotable
from hgmem.models.prompts import PromptTask, quoted
from hgmem.models.reply import TextReply
from hgmem.text.segmentation import collapse, is_unspaced, words
from hgmem.text.tokens import count
from hgmem.values.evidence import BuiltPassage

_MOST_SENTENCES = 2_000  # of one passage


def _passage(texts: Sequence[tuple[str, str]]) -> str:
    return quoted("\n\n".join(f"{heading}\n{text}" if heading else text for heading, text in texts))


@dataclass(frozen=True, kw_only=True)
class WriteGist(PromptTask):
    """Ask for the gist of a passage, of at most so many tokens (MemoRAG-Lite: one call for each passage).

    `texts` are its parts in order, each with its heading. The prompt names words, as many as
    the passage itself has in so many tokens, since no model can count its tokens.
    """

    texts: Annotated[tuple[tuple[str, str], ...], _passage, "passage"]
    tokens: int
    name = "gist"
    reply_type = TextReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        return {**super().fields(), "words": f"{self.words:,}"}

    @property
    def words(self) -> int:
        """The most words of the gist: at most one for each token, down to tens."""
        text = "\n".join(text for _, text in self.texts)
        found = words(text)
        pairs = sum(map(is_unspaced, found))  # of neighbouring characters: a word has two of them
        most = int(self.tokens * min(1, (len(found) - pairs / 2) / max(1, count(text))))
        return most - most % 10 if most >= 10 else max(1, most)

    def extractive(self, vectors: CheckedEmbedder) -> TextReply:
        """Return the most central sentences of the passage, verbatim, in its order, without a language model.

        Each next one is nearest to the mean of all, and unlike those that were chosen. A passage without a sentence is
        returned as it is.
        """
        parts = [part for _, text in self.texts for part in text.split("\n\n")]
        found = quotable(passages([BuiltPassage(uid="", kind="", text=part) for part in parts]))[:_MOST_SENTENCES]
        if not found:
            return TextReply(text="\n".join(collapse(text) for _, text in self.texts))
        every = vectors.of([sentence.text for sentence in found])
        costs = [count(sentence.text) for sentence in found]
        chosen = diverse(every, nearness_to_centre(every), costs, budget=self.tokens)
        return TextReply(text="\n".join(found[at].text for at in sorted(chosen)))
