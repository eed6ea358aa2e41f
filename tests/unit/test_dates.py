"""Dates of documents: only what tells a month and a year, whatever else has digits."""

import pytest

from hgmem.text.dates import date_of, type_of


@pytest.mark.parametrize(
    ("title", "language", "wanted"),
    [
        ("Letter of Ida Berg, 12 March 1874", "en", "1874-03-12"),
        ("Minutes, March 12, 1874", "en", "1874-03-12"),
        ("Evidence, 9th November 1859", "en", "1859-11-09"),
        ("Report, May 1874", "en", "1874-05"),
        ("1874-03-12 note", "en", "1874-03-12"),
        ("Brief vom 3. März 1874", "de", "1874-03-03"),
        ("Lettre du 3 mars 1874", "fr", "1874-03-03"),
        ("报告 1874年3月12日", "zh", "1874-03-12"),
        ("Invoice of 25/12/2021", "en", "2021-12-25"),
        ("Invoice of 03/04/2021", "en", ""),  # March or April
        ("12/2020", "en", "2020-12"),
        ("Case 12/2020", "en", ""),  # the twelfth case
        ("May", "en", ""),
        ("In 1859 the pool", "en", ""),
        ("Volume 3 of 1861 pages", "en", ""),
        ("Results of Q3 2021", "en", ""),
        ("March 32, 1874", "en", ""),
        ("doi 10.1145/3696410.3714805", "en", ""),
        ("Protokoll 13.05.2020", "de", "2020-05-13"),
        ("Letter, May 3,1861", "en", "1861-05-03"),
        ("The Terra Nova Expedition 1910-12", "en", ""),  # two years
        ("Log 1874-03", "en", "1874-03"),
        ("2023-02-31", "en", ""),
        ("5 May 1861 (transcribed 2020-01-02)", "en", "1861-05-05"),
        ("", "en", ""),
    ],
)
def test_a_title_has_a_date_where_it_tells_month_and_year(title: str, language: str, wanted: str) -> None:
    assert date_of(title, "", {}, language=language) == wanted
    assert date_of("", f"{title}\nIt rained.", {}, language=language) == wanted


def test_metadata_come_first_and_then_the_title_and_the_first_lines() -> None:
    text = "\n\nHolm, 1 May 1870\n" + "It rained.\n" * 5 + "2 June 1871"
    assert date_of("Letter, March 1869", text, {"date": "1868-01-02T10:00:00"}, language="en") == "1868-01-02"
    assert date_of("Letter, March 1869", text, {"date": "soon"}, language="en") == "1869-03"
    assert date_of("Letter", text, {}, language="en") == "1870-05-01"
    assert date_of("Letter", "It rained.\n" * 5 + "2 June 1871", {}, language="en") == ""


def test_ten_thousand_documents_of_one_title_take_a_moment() -> None:
    dates = {date_of("Minutes of 3 May 1870", "It rained.", {}, language="en") for _ in range(10_000)}
    assert dates == {"1870-05-03"}


def test_the_type_of_a_document_is_what_its_metadata_call_it() -> None:
    assert [type_of(each) for each in ({"kind": "letter"}, {"type": 3, "genre": "log"}, {})] == ["letter", "log", ""]
