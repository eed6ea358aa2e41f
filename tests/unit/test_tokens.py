import json
import time
from pathlib import Path

import pytest

from hgmem.text.tokens import count

NOVEL = Path(__file__).parents[2].parent / "shared" / "data" / "gods_of_mars" / "kv_store_text_chunks.json"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        (" ", 0),
        ("The ship sails at noon.", 6),
        ("2026", 2),
        ("one\n\ntwo", 3),
        ("snake_case", 3),
        ("camelCase", 2),
        ("größe", 1),
        ("漢" * 100, 70),
    ],
)
def test_words_digits_marks_and_characters_are_counted(text, expected):
    assert count(text) == expected


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, my name is GPT-4o. I'm a new type of language model, it's nice to meet you!", 24),
        ("你好，我的名字是GPT-4o。我是一种新型的语言模型，很高兴见到你!", 24),
        ("Привет, меня зовут GPT-4o. Я — новая языковая модель, приятно познакомиться!", 23),
        ("Hallo, mein Name is GPT-4o. Ich bin ein neues KI-Sprachmodell. Es ist schön, dich kennenzulernen.", 29),
        ("नमस्ते, मेरा नाम जीपीटी-4o है। मैं एक नए प्रकार का भाषा मॉडल हूँ। आपसे मिलकर अच्छा लगा!", 31),
    ],
)
def test_other_languages_are_met_within_a_fifth(text, tokens):
    assert count(text) == pytest.approx(tokens, rel=0.2)


@pytest.mark.parametrize("unit", ["a", "A", " ", "\n", " \n", "\r\n\t", "!", "_", "漢", "e\u0301", "👩‍👧", "\0"])
def test_a_long_run_of_anything_costs_tokens_and_little_time(unit):
    began = time.process_time()
    tokens = count(unit * 100_000)
    assert tokens >= 100_000 // 80
    assert time.process_time() - began < 5


def test_the_estimate_is_near_the_real_tokens_of_a_novel():
    if not NOVEL.exists():
        pytest.skip(f"{NOVEL} is not here")
    chunks = json.loads(NOVEL.read_text("utf-8")).values()
    errors = [abs(count(chunk["content"]) / 200 - 1) for chunk in chunks if chunk["tokens"] == 200]
    assert len(errors) == 753
    assert sum(errors) / len(errors) < 0.03
    assert max(errors) < 0.18
