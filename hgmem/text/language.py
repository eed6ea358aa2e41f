"""Language detection of questions (English if unclear), fixed sentences in it, and numbers with their nouns."""

import re

from hgmem.text.segmentation import words

_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
)
_PART = 4  # a script with a quarter of the letters is more than a quotation
_COMMON = {
    "de": "der die das und ist wer wie was warum wo wann welche welcher nicht ein eine den dem von mit hat wurde",
    "fr": "le la les des est qui que quoi comment pourquoi où quand quel quelle une dans avec ce cette sont pas",
    "es": "el los las es quién qué cómo por dónde cuándo cuál una del con para que quien como fue está",
    "it": "il lo gli è chi che cosa come perché dove quando quale una del della con per sono fu",
    "pt": "o os as é quem que como porque onde quando qual uma do da com para não foi são",
    "en": "the a an is who what how why where when which of and did does was were in to",
}
_NO_EVIDENCE = {
    "en": "The corpus holds nothing about this question.",
    "de": "Der Korpus enthält nichts zu dieser Frage.",
    "fr": "Le corpus ne contient rien sur cette question.",
    "es": "El corpus no contiene nada sobre esta pregunta.",
    "it": "Il corpus non contiene nulla su questa domanda.",
    "pt": "O corpus não contém nada sobre esta pergunta.",
    "ru": "В корпусе нет ничего по этому вопросу.",
    "zh": "语料库中没有与此问题相关的内容。",
    "ja": "コーパスにはこの質問に関する情報がありません。",
    "ko": "말뭉치에 이 질문에 관한 내용이 없습니다.",
    "ar": "لا تحتوي المدونة على أي شيء يخص هذا السؤال.",
}


def language_of(text: str) -> str:
    """Return the two-letter code of the text's language."""
    letters = sum(character.isalpha() for character in text)
    for code, script in _SCRIPTS:
        if len(script.findall(text)) * _PART > letters:
            return code
    found = words(text)
    counts = {code: sum(word in set(common.split()) for word in found) for code, common in _COMMON.items()}
    best = max(counts, key=lambda code: (counts[code], code == "en"))
    return best if counts[best] else "en"


def no_evidence(question: str) -> str:
    """Return the sentence that reports missing evidence, in the question's language."""
    return _NO_EVIDENCE[language_of(question)]


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as "1,200 chunks". `many` is an irregular plural."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
