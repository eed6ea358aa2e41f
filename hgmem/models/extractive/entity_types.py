"""Entity types, guessed from a name and the words around it."""

from collections.abc import Sequence

from hgmem.text.segmentation import word_set

TITLES = word_set(
    "mr mrs miss ms mx dr doctor captain capt lady sir lord professor prof inspector detective sergeant sgt colonel "
    "col major maj general gen judge justice uncle aunt king queen prince princess emperor empress president minister "
    "senator father brother sister saint madame madam mme mlle monsieur herr frau signor señor master chief constable "
    "count countess baron duke duchess earl commander lieutenant lt mayor bishop rev reverend pope admiral goddess "
    "dator jeddak jed secretary director chancellor ambassador governor engineer nurse"
)
# Titles that carry no type when they stand alone.
FORMS_OF_ADDRESS = word_set("mr mrs miss ms mx dr capt sir prof sgt col maj gen st mme mlle lt rev madam")

_ORGANIZATION_ENDS = word_set(
    "ltd limited inc incorporated llc plc gmbh ag sa corp corporation company co bank university college school "
    "institute committee council society trust office board association department ministry press agency authority "
    "commission bureau foundation guild union group partners sons brothers bros club academy hospital museum court "
    "parliament police army navy party league exchange insurance works services laboratories labs registry "
    "банк общество университет компания институт министерство"
)
_ORGANIZATION_STARTS = word_set(
    "bank university ministry house institute department college office board society church order court bureau "
    "guild league committee council"
)
_PLACE_WORDS = word_set(
    "street st road rd lane avenue square river lake bay harbour harbor island islands isle castle park bridge valley "
    "hill hills mountain mountains sea ocean city town village county state district port pier quay dock gardens "
    "garden hall palace tower temple cathedral station market gate forest wood woods desert coast canal falls cape "
    "peninsula plaza warehouse lighthouse mill farm exchange reach creek point beach"
)
_PLACE_STARTS = word_set(
    "mount lake cape fort port san santa new north south east west upper lower great río isle valley river gulf bay "
    "city town kingdom republic temple sea"
)
_PLACE_ENDINGS = ("ville", "shire", "burgh", "stadt", "grad", "mouth", "borough", "bury", "wick", "haven", "stan")
_EVENT_WORDS = word_set(
    "war battle revolution festival conference inquiry flood fire treaty election strike riot massacre siege "
    "eve congress summit games olympics trial expedition crisis storm christmas easter ramadan"
)
_SPEAKING = word_set(
    "said says cried asked replied answered told whispered shouted exclaimed returned added murmured laughed smiled "
    "nodded thought knew felt believed remembered wrote writes married died lived loved wanted refused agreed "
    "admitted promised testified signed looked turned walked ran stood sat"
)
_WITHIN = word_set("in near across throughout inside outside within into around")
_PERSON_SUFFIX = word_set("jr sr esq phd")


def kind_of(words: Sequence[str], *, before: str = "", after: str = "", joined: bool = False) -> str:
    """Return the likely type of the name made of `words` (casefolded), by default "concept".

    `before` and `after` are its neighbours in the sentence. `joined` tells whether the name contains an "of".
    """
    first, last = words[0], words[-1]
    if first in TITLES:
        return _titled(words)
    if last in _PERSON_SUFFIX:
        return "person"
    if _event(words):
        return "event"
    if last in _ORGANIZATION_ENDS or (joined and first in _ORGANIZATION_STARTS):
        return "organization"
    if _place(words):
        return "place"
    return _from_context(words, before=before, after=after)


def _titled(words: Sequence[str]) -> str:
    return "role" if len(words) == 1 or words[1] == "of" else "person"


def _event(words: Sequence[str]) -> bool:
    return words[-1] in _EVENT_WORDS or (words[0] in _EVENT_WORDS and len(words) > 1)


def _place(words: Sequence[str]) -> bool:
    if len(words) > 1 and (words[-1] in _PLACE_WORDS or words[0] in _PLACE_STARTS):
        return True
    return len(words[-1]) > 5 and words[-1].endswith(_PLACE_ENDINGS)


def _from_context(words: Sequence[str], *, before: str, after: str) -> str:
    if after in _SPEAKING or before in _SPEAKING:
        return "person"
    if before in _WITHIN:
        return "place"
    return "person" if len(words) in (2, 3) and "of" not in words else "concept"
