"""Key phrases of a text in any script, for topics without names."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hgmem.text.segmentation import word_set, words

_ENGLISH = """
a about above across after again against ago ah ain't all almost alone along already also although always am among
an and another any anybody anyhow anyone anything anyway anywhere are aren't around as aside at away back be became
because become been before began begin behind being below beneath beside besides best better between beyond big
both but by came can can't cannot certain certainly come comes could couldn't dear did didn't different do does
doesn't doing don't done down during each early either else enough especially etc even ever every everybody
everyone everything everywhere except far few finally find first for former forth found four from full further
gave get gets give given go goes going gone good got great had hadn't half has hasn't have haven't having he he'd
he'll he's hello hence her here here's hers herself hey him himself his how however i i'd i'll i'm i've if in
indeed instead into is isn't it it's its itself just keep kept know known knew last late later least left less let
let's like likely little long look looked made make makes making many may maybe me meanwhile might mine more
moreover most mostly much must my myself namely near nearly neither never nevertheless new next nine no nobody none
nonetheless nor not nothing now nowhere o of off often oh ok okay old on once one ones only onto or other others
otherwise ought our ours ourselves out over own part per perhaps please poor put quite rather really right said
same saw say saying says second see seem seemed seems seen set seven several shall she she'd she'll she's should
shouldn't show since sir six so some somebody somehow someone something sometimes somewhere soon still such sure
take taken ten than thank thanks that that's the thee their theirs them themselves then thence there there's
therefore these they they'd they'll they're they've thing things think third this those thou though thought three
through throughout thus thy till to today together told tomorrow too took toward towards turn turned twice two
under unless unlike until up upon us use used very via want wanted was wasn't way we we'd we'll we're we've well
went were weren't what whatever what's when whence whenever where where's whereas whereby wherein wherever whether
which whichever while whither who who'd who's whoever whole whom whose why will with within without won't word would
wouldn't ye yea yes yesterday yet you you'd you'll you're you've young your yours yourself yourselves
"""
# Question words and imperatives, which are not the subject of a question.
_ASKING = """
answer ask asked connect connected connection connects describe detail details discuss example examples explain
explains happen happened happens kind link linked links list main mean means mention mentioned name named names
outline person place reason relate related relation relationship role sort story summarise summarize tell text type
way ways
"""
_STARTERS = """
accordingly actually additionally altogether amid anon apparently assuming based believe both chapter clearly come
consequently contents curiously currently despite doubtless due eight eleven eventually evidently external fifteen
fifth figure fine five fortunately fourth frankly friend friends further furthermore generally gentlemen god good
goodness gradually granted hark heaven historically hundreds hush immediately important including initially
inside interestingly lately links lo look lord many man men merry million moments naturally nay none notably
note notes obviously occasionally originally outside overall page part particularly please presently previously
probably quick quickly recently references regarding remember scarcely seeing several shortly similarly simply six
slowly somewhat soon specifically suddenly supposing surely table thereafter thereupon thirdly thousands twelve twenty
ultimately under unfortunately usually volume wait whereupon women
"""
_OTHERS = """
der das den dem des ein eine einen einem einer und oder aber nicht ist sind waren wird werden wurde wurden
hat haben hatte hatten mit von vom zu zum zur im am auf aus bei nach für über unter durch auch noch nur schon sehr
wie wer wo wann warum weil dass wenn als es sie wir ihr ihm ihn sich sein seine seiner ihre mich dich uns kein keine
le la les un une du au aux et ou mais dans par pour sur avec sans sous ce cet cette ces il elle ils elles nous vous
je tu ne pas plus que qui quoi dont où est sont était étaient être avoir avait ont se sa ses leur leurs son comme si
el los las una unos unas y o pero en con por para sin sobre del al lo se su sus es eran fue fueron ser estar
está que quien cual como cuando donde porque no sí más muy este esta estos estas ese esa yo él ella ellos nosotros
il lo gli i una e ed ma di da in con su tra fra che chi cui come quando dove perché non sono erano essere ha
hanno aveva del della dello dei degli delle nel nella al alla si suo sua suoi loro questo questa quello quella
os uma uns umas não com dos das nos nas pelo pela ao à foi foram são seu sua ele ela eles elas isso isto mais
и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще
нет о из ему теперь когда даже ну вдруг ли если уже или ни быть был него до вас нибудь опять уж вам ведь там потом
себя ничего ей может они тут где есть надо ней для мы тебя их чем была сам чтоб без будто чего раз тоже себе под
будет ж тогда кто этот того потому этого какой совсем ним здесь этом один почти мой тем чтобы нее были куда зачем
всех никогда можно при наконец два об другой хоть после над больше тот через эти нас про всего них какая много
разве три эту моя впрочем хорошо свою этой перед иногда лучше чуть том нельзя такой им более всегда конечно всю между
في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا لماذا كيف متى أين هل هو هي هم نحن أنا أنت كان كانت يكون
قد لا لم لن إن أن أو ثم بل كل بعض غير بعد قبل عند بين حتى إذا لكن و
"""

# German words that are also English ones: stop words only beside other German ones.
_GERMAN = word_set("die war hat man so also am")
_GERMAN_SIGNS = word_set("der das und nicht ist ein eine dem den")

STOPWORDS = word_set(f"{_ENGLISH} {_OTHERS}")
ASKING = word_set(_ASKING)
STARTERS = word_set(_STARTERS)

# Chinese and Japanese particles, which join words.
GLUE = frozenset(
    "的了是在和与之也就都而及或把被这那不我你他她它们为于以从到对向有个着过吗呢吧啊么什哪谁怎很更最又还但却因所其此"
    "は が を に の へ と も で や か ら し た て い る れ な あ こ そ ど ま す".replace(" ", "")
)
_PART = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[^\s\w]")
_UNSPACED = re.compile("[぀-ヿ㐀-鿿豈-﫿]")
_NO_NOUN = ("ly", "ing", "ed")
_LONGEST = 40


def stopwords(tokens: list[str]) -> frozenset[str]:
    """Return the stop words for a text of these (casefolded) words."""
    return STOPWORDS | _GERMAN if len(_GERMAN_SIGNS.intersection(tokens)) > 1 else STOPWORDS


def stem(word: str) -> str:
    """Return `word` (casefolded) without the most common English endings. Other scripts stay unchanged."""
    if not word.isascii() or len(word) < 4:
        return word
    for ending, rest in (("ies", "y"), ("ing", ""), ("ied", "y"), ("ed", ""), ("es", ""), ("s", ""), ("ly", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2 and not word.endswith("ss"):
            return _undoubled(word[: -len(ending)] + rest)
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def stems(text: str) -> list[str]:
    """Return the stems of the words of `text` in order, without stop words and single letters."""
    found = words(text)
    stop = stopwords(found)
    return [stem(word) for word in found if word not in stop and not joins(word)]


def written(tokens: Sequence[str]) -> str:
    """Return words as one text. Overlapping character pairs of an unspaced script are merged again."""
    text = ""
    for token in tokens:
        if text and len(token) == 2 and _UNSPACED.match(token) and token[0] == text[-1]:
            text += token[1]
        else:
            text += f" {token}" if text else token
    return text


def joins(word: str) -> bool:
    """Whether a word is a single letter, or a character pair that contains a particle."""
    if word.isascii():
        return len(word) == 1
    return len(word) <= 2 and not GLUE.isdisjoint(word)


def key_phrases(text: str, *, limit: int, repeated: bool) -> list[str]:
    """Return up to `limit` key phrases of `text`, as written, best first.

    A phrase is one to three words without a stop word among them (in Chinese and Japanese, the text between particles).
    With `repeated`, only phrases that occur twice are kept.
    """
    text = unicodedata.normalize("NFKC", text)
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for phrase in _candidates(text):
        counts[phrase.casefold()] += 1
        written.setdefault(phrase.casefold(), phrase)
    frequency = Counter(word for phrase in counts.elements() for word in phrase.split())
    ranked = sorted(counts, key=lambda key: (-_weight(key, counts[key], frequency=frequency), key))
    kept = (key for key in ranked if not repeated or counts[key] > 1)
    return [written[key] for key in _distinct(kept, limit=limit)]


def _undoubled(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _candidates(text: str) -> Iterator[str]:
    parts = _PART.findall(text)
    stop = stopwords([part.casefold() for part in parts])
    run: list[str] = []
    for part in [*parts, "."]:
        if _UNSPACED.search(part):
            yield from _stretches(part)
            part = "."
        if _may_be_part(part, stop):
            run.append(part)
            continue
        yield from _phrases(run)
        run = []


def _may_be_part(part: str, stop: frozenset[str]) -> bool:
    low = part.casefold()
    return part[0].isalpha() and 2 < len(part) <= _LONGEST and low not in stop and not low.endswith(("n't", "’t"))


def _phrases(run: list[str]) -> Iterator[str]:
    """Yield a run of up to three words as a phrase, then its longer words."""
    if 1 < len(run) <= 3:
        yield " ".join(run)
    for word in run:
        if len(word) > 3 and not (word.isascii() and word.endswith(_NO_NOUN)):
            yield word


def _stretches(run: str) -> Iterator[str]:
    stretch = ""
    for character in [*run[:2000], "的"]:
        if character not in GLUE:
            stretch += character
            continue
        if 2 <= len(stretch) <= 8:
            yield stretch
        stretch = ""


def _weight(key: str, count: int, *, frequency: Counter[str]) -> float:
    parts = key.split()
    together = sum(frequency[part] for part in parts) / len(parts)
    return count * (1.0 + 0.5 * (len(parts) - 1)) * (1.0 + 0.1 * together) * math.sqrt(min(len(key), 12))


def _distinct(keys: Iterable[str], *, limit: int) -> Iterator[str]:
    """Yield phrases that share no word stem with each other."""
    taken: set[str] = set()
    kept = 0
    for key in keys:
        parts = {stem(word) for word in key.split()}
        if kept >= limit:
            return
        if not parts & taken:
            kept += 1
            taken |= parts
            yield key
