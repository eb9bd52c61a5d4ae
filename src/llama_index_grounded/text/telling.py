"""Words that are numbers, dates, limits or negations though no digit says so, and words that say next to nothing.

In English and Turkish the lists are wide: a word too many keeps apart two texts that differ in it, which costs tokens.
Of other languages there are the plain negations only; `wording` treats their other words with more care.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llama_index_grounded.text.counting import counted
from llama_index_grounded.text.measures import MEASURES

__all__ = ["FUNCTION_WORDS", "LIMITING_WORDS", "marks_of_a_language", "telling"]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SAME = """
january jan|maymonth|february feb|march mar|april apr|june jun|july jul|august aug|september sept sep|october oct
november nov|december dec|monday mondays mon|tuesday tuesdays tue tues|wednesday wednesdays wed
thursday thursdays thu thurs|friday fridays fri|saturday saturdays sat|sunday sundays sun
weekend weekends|weekday weekdays
gram g-gram|microgram micrograms mcg µg μg|ounce ounces oz|litre litres liter liters|millilitre millilitres ml
gallon gallons|pint pints|yard yards|watt watts|kilowatt kilowatts kw|megawatt megawatts mw|celsius centigrade
fahrenheit|pound pounds|volt volts|bit bits|ms millisecond milliseconds|percent pct
lakh lakhs|crore crores
kilobit kilobits kbit kbits|megabit megabits mbit mbits|gigabit gigabits gbit gbits|kbyte kbytes|mbyte mbytes
gbyte gbytes
"""
_LONE = """
once twice thrice daily weekly monthly yearly annually annual hourly nightly quarterly biweekly bimonthly biannual
biannually biennial fortnight fortnights fortnightly dozen dozens decade decades century centuries millennium millennia
morning noon midday afternoon evening night midnight today tomorrow yesterday spring summer autumn winter christmas
easter ramadan single dual duo trio quartet quintet sextet duplicate triplicate twin twins
always sometimes often seldom rarely minimum maximum without unless except excepting excluding
twenties thirties forties fifties sixties seventies eighties nineties plus minus
ii iii iv vi vii viii ix xi xii xiii
günlük haftalık aylık yıllık sabah öğle akşam gece bugün yarın dün ilkbahar sonbahar kış çift yarım düzine daima bazen
nadiren hariç dışında artı eksi birer ikişer üçer dörder beşer altışar yedişer sekizer dokuzar onar
üçte dörtte beşte altıda yedide sekizde dokuzda onda
零 〇 一 二 两 三 四 五 六 七 八 九 十 百 千 萬 万 億 亿 半
"""
_NOT = """
not no never cannot nor neither none nobody nothing nowhere hardly barely scarcely cant dont wont isnt arent wasnt
werent doesnt didnt hasnt havent hadnt wouldnt shouldnt couldnt mustnt neednt aint
değil değildir yok yoktur asla hiç hiçbir sakın
nicht kein keine keinen keinem keiner keines nie niemals nichts ohne niet geen nooit niets zonder ne pas jamais aucun
aucune rien sans ni nunca jamás tampoco sin ningún ninguna não jamais sem nenhum nenhuma nem non mai senza nessun
nessuno nessuna inte icke ingen inga inget aldrig utan ikke aldri uten uden ei älä älkää eivät ilman nie nigdy bez není
nikdy nu niciodată fără nem nincs soha tidak bukan jangan belum tanpa không chưa đừng
не нет ни нельзя никогда без ні ніколи немає няма δεν μην όχι χωρίς
لا لم لن ليس ليست بدون غير לא אין בלי نه نیست نباید نمی नहीं न मत बिना না নেই இல்லை
不 没 沒 无 無 未 非 别 別 勿 否 禁 않 안 못 없
"""
_CANONICAL = {
    **{word: word for word in _set(_LONE)},
    **{word: f"unit {name}" for name, words in MEASURES.items() for word in words.split()},
    **{word: group.split()[0] for group in re.split(r"[|\n]", _SAME) if group for word in group.split()},
    **dict.fromkeys(_set(_NOT), "not"),
}
_TURKISH_TIME = re.compile(
    r"(pazartesi|salı|çarşamba|perşembe|cumartesi|cuma|pazar|oca[kğ]|şubat|mart|nisan|mayıs|haziran|temmuz|ağustos|eylül"
    r"|ekim|kasım|aralı[kğ])\w{0,8}"
)
_TURKISH_NOT = re.compile(r"\w{2,24}m[ae](?:y[ıi]n(?:[ıi]z)?|s[ıi]n(?:l[ae]r)?|y[ae]l[ıi]m|z(?:l[ae]r|s[ıi]n\w{0,3})?)")

LIMITING_WORDS = _set(
    """
    previous next last current former latter half quarter both all some any each every few several many most more less
    least fewer only above below over under before after until till since within beyond exceeding during early earlier
    late later usually including included inclusive exclusive mild moderate severe fall first second third
    tek her bazı hep sadece yalnız yalnızca önce sonra öncesi sonrası öncesinde sonrasında ilk son geçen gelecek
    önümüzdeki üstünde altında üzerinde içinde dahil
    """
)
"""Words that limit what is said: they matter where little else differs."""
FUNCTION_WORDS = _set(
    """
    a an the of to in on at by for with from as and or but if that this these those it its is are was were be been being
    am do does did have has had will would can could may might you your yours we our us they their them he she his him
    her i my me who whom which what when where how why there here so than then also too very just such into onto about
    between through own same other please eg ie etc s t
    bir bu şu o ve veya ya da de ile için gibi kadar ki mi mı mu mü ne ise olarak olan olur var ama fakat en daha çok
    """
)
_MARKS = _set(
    """
    the and with this that these those which from you your its it they their been being were has had would should could
    must when than then there cannot bir bu ve için ile veya olarak kadar gibi göre olan ancak eğer
    """
)
_TURKISH_LETTERS = frozenset("ığ")


def telling(word: str) -> str:
    """Return what a word in lower case tells, the same for all its forms; empty for a word that tells nothing.

    Example:
        >>> telling("mondays"), telling("dont"), telling("kullanmayın"), telling("book")
        ('monday', 'not', 'not', '')
    """
    if found := _CANONICAL.get(word) or counted(word):
        return found
    if word.endswith("n't") or _TURKISH_NOT.fullmatch(word):
        return "not"
    time = _TURKISH_TIME.fullmatch(word)
    return time[1].replace("ğ", "k") if time else ""


def marks_of_a_language(words: Iterable[str]) -> int:
    """Count the words that English or Turkish sentences have and few others."""
    return sum(1 for word in words if word in _MARKS or not _TURKISH_LETTERS.isdisjoint(word))
