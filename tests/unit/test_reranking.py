"""Tests of rerankers: a CrossEncoder of sentence-transformers, small and untrained, made and loaded by its path."""

import importlib.util
import re
from pathlib import Path

import pytest

from hgmem.errors import UsageError
from hgmem.models.reranking import find_reranker

if importlib.util.find_spec("sentence_transformers") is None:
    pytest.skip("sentence_transformers is not installed: pip install 'hgmem[local]'", allow_module_level=True)

pytestmark = pytest.mark.weights

TEXTS = ["the boat lies in the harbour", "apple trees", "a red boat", "nothing of it"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of two layers that has one output."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("cross-encoder")
    words = sorted({word for text in TEXTS for word in re.findall(r"\w+", text)})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    numbered = {word: number for number, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(vocab=numbered, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks).save_pretrained(folder)
    torch.manual_seed(26)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=1,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def test_a_cross_encoder_scores_each_text_with_the_question(weights: Path) -> None:
    from sentence_transformers import CrossEncoder

    rank = find_reranker(str(weights))
    scores = rank("where is the boat", TEXTS)
    expected = CrossEncoder(str(weights)).predict([("where is the boat", text) for text in TEXTS])
    assert len(set(scores)) == len(TEXTS)
    assert scores == pytest.approx([float(score) for score in expected], abs=1e-5)
    assert rank("apple trees", TEXTS) != pytest.approx(scores, abs=1e-5)
    assert find_reranker(str(weights)) is rank


def test_weights_that_are_none_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match=f"reranker '{tmp_path}' cannot be loaded: "):
        find_reranker(str(tmp_path))
