import re

import pytest

from hgmem.settings import Settings
from hgmem.text.language import _LANGUAGES, _SCRIPTS, language_of, no_evidence

QUESTIONS = [
    ("en", "Who sold the mill, and why?"),
    ("en", "Was Anna in the mill?"),
    ("de", "Wer ist der neue Müller und warum ging er?"),
    ("de", "Was ist mit dem Boot?"),
    ("fr", "Qui est le meunier, et où est la rivière ?"),
    ("fr", "Quand est-ce que le bateau a quitté le port ?"),
    ("es", "¿Quién es el molinero y dónde está el barco?"),
    ("it", "Chi è il mugnaio e perché sono partiti?"),
    ("pt", "Quem são os donos do moinho e onde não foi visto?"),
    ("ru", "Кто продал мельницу?"),
    ("zh", "谁卖掉了磨坊？"),
    ("ja", "誰が水車小屋を売りましたか？"),
    ("ko", "누가 방앗간을 팔았습니까?"),
    ("ar", "من باع الطاحونة؟"),
]


@pytest.mark.parametrize(("code", "question"), QUESTIONS)
def test_the_language_of_a_question_is_told(code, question):
    assert language_of(question) == code


@pytest.mark.parametrize("text", ["", "?!", "Ravensund Orrery", "12345", "Ποιος πούλησε τον μύλο;", "\0", "+-&&||"])
def test_english_is_meant_where_nothing_tells(text):
    assert language_of(text) == "en"


@pytest.mark.parametrize(("code", "question"), QUESTIONS)
def test_the_sentence_that_there_is_nothing_is_in_the_questions_language(code, question):
    assert no_evidence(question) == _LANGUAGES["no_evidence"][code]


def test_every_language_has_a_sentence_of_its_own():
    assert len(set(_LANGUAGES["no_evidence"].values())) == len(_LANGUAGES["no_evidence"])


def test_the_setting_lists_the_languages_that_documents_tell():
    told = {*_LANGUAGES["common"], *(code for code, _ in _SCRIPTS)}
    listed = re.search(r"\((.+)\)", Settings.model_fields["language"].description)[1]
    assert set(listed.split(", ")) == told
