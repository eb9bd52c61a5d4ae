"""Recognise what states nothing: pleasantries, greetings, lead-ins, short headings, questions that only ask.

Each rule covers a whole sentence, word for word, from closed lists, and what holds a number, a negation or a citation
marker states something whatever else it is. A lone "Sure!" counts as a pleasantry. What no rule covers claims
something: a claim that is not judged is worse than a pleasantry that is.
"""

from __future__ import annotations

import re

from llama_index_grounded.checks.pleasantries import is_pleasantry
from llama_index_grounded.text.case import lower
from llama_index_grounded.text.quantities import quantities

__all__ = ["is_attribution", "is_bare_heading", "is_empty_talk", "is_lead_in", "is_question", "says_number_or_no"]

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MOST_NAMES = 2
_SHORT = 4
_LONGEST_CONTENTS = 8


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEGATIONS = _set(
    "no not never cannot without neither nor none nothing nobody değil yok hiç hiçbir asla yoktur degil yoksa"
)
_GREETING = re.compile(
    r"(?:hello|hi|hey|dear|greetings|good[ ](?:morning|afternoon|evening|day)|merhaba(?:lar)?|selam(?:lar)?|sayın"
    r"|günaydın|iyi[ ](?:günler|akşamlar))(?![^\W_])"
)
_GREETED = _set("there all everyone everybody team again customer sir madam friend friends to you herkese tekrar")
_SOURCES = r"(?:sources?|documents?|context|information|text|passages?|references?)"
_ATTRIBUTION = re.compile(
    rf"""
      (?:based[ ]on|according[ ]to|as[ ]per)[ ](?:the[ ]|your[ ]|these[ ])?
      (?:(?:provided|given|above|attached|available|cited|retrieved|supplied|following|library|source|text)[ ]){{0,2}}
      {_SOURCES}(?:[ ](?:i|we|you|have|gave|shared|above|below|provided|given|me|to|in))*
    | (?:(?:verilen|sağlanan|yukarıdaki|mevcut|bu|sunulan|eldeki)[ ]){{0,2}}
      (?:kaynak|belge|doküman|bilgi|metin)\w*[ ]göre
    | {_SOURCES}|kaynak(?:lar|ça)?
    """,
    re.VERBOSE,
)
_LEAD_IN = re.compile(
    r"\b(?:as[ ]follows|following|below|here(?:['’]s|[ ](?:is|are))|in[ ]summary|includes?|for[ ]example"
    r"|şun[a-zıü]*|şöyle[a-zıi]*|aşağıda\w*|örneğin|özetle)\b"
)
_CONTENTS = re.compile(
    rf"(?:the|this|these)[ ]{_SOURCES}[ ]"
    r"(?:describes?|mentions?|contains?|discuss(?:es)?|lists?|covers?|names?)[ ](?!that\b)"
)
_VERBS = _set(
    """
    is are was were be been being am has have had do does did can could may might must will would shall should
    takes take took taken get gets got need needs needed require requires required pay pays paid apply applies
    applied expire expires expired begin begins began give gives gave given allow allows allowed become
    becomes became costs lasts starts ends opens closes includes include var
    """
)
_TURKISH_VERB = re.compile(
    r"\w{2,}(?:[ae]bil[ıi]r|[ıiuü]yor|m[ae]z|m[ae]l[ıi]|[ae]c[ae]k|[dt][ıiuü]r|[ıiuü]l[ıiuü]r|[ıi]n[ıi]r)\Z"
)
_TAG = re.compile(r",\s*(?:right|correct|ok|okay|yes|no|eh|huh|tamam|doğru)\W*\Z")
_TOLD = re.compile(
    r"(?:did|do)[ ]you[ ]know\b|have[ ]you[ ]heard\b"
    r"|.*\b(?:biliyor|duydunuz|duymuş)[ ]?(?:mu|muy|muydunuz|musunuz|mudunuz)"
)
_ENUMERATED = re.compile(r"[0-9]{1,2}(?:[.)]|(?:\.[0-9]{1,3}){1,4}[.)]?)[ \t]+")


def says_number_or_no(text: str) -> bool:
    """Say whether a text holds a number or a negation, and so more than politeness.

    Example:
        >>> says_number_or_no("ninety days"), says_number_or_no("refunds aren't given"), says_number_or_no("hi")
        (True, True, False)
    """
    if any(map(str.isnumeric, text)) or any(found.certain for found in quantities(text)):
        return True
    return any(word in _NEGATIONS or word.endswith(("n't", "n’t")) for word in _words(text))


def is_empty_talk(said: str) -> bool:
    """Say whether all of a sentence is a greeting, a pleasantry or the mention of sources.

    Example:
        >>> is_empty_talk("I hope this helps!"), is_empty_talk("I hope this helps: refunds are free.")
        (True, False)
    """
    return is_attribution(said) or _is_greeting(_plain(said), said) or is_pleasantry(said)


def is_attribution(said: str) -> bool:
    """Say whether all of a sentence is the mention of sources.

    Example:
        >>> is_attribution("Based on the sources:"), is_attribution("Based on the sources, it is free.")
        (True, False)
    """
    return _ATTRIBUTION.fullmatch(_plain(said)) is not None


def is_lead_in(said: str) -> bool:
    """Say whether a text that ends with a colon only announces what follows.

    Example:
        >>> is_lead_in("The rules are as follows:"), is_lead_in("Refunds are free:")
        (True, False)
    """
    plain = lower(said)
    contents = _CONTENTS.match(plain) is not None and len(_words(said)) <= _LONGEST_CONTENTS
    return contents or _LEAD_IN.search(plain) is not None or is_bare_heading(said)


def is_bare_heading(said: str) -> bool:
    """Say whether a heading only names its topic: one to four words, and no verb, number or negation.

    Example:
        >>> is_bare_heading("Return policy"), is_bare_heading("Refunds take 90 days")
        (True, False)
    """
    text = _ENUMERATED.sub("", said, count=1) if _ENUMERATED.match(said) else said
    words = _words(text)
    verbs = any(word in _VERBS or _TURKISH_VERB.match(word) for word in words)
    return len(words) <= _SHORT and not verbs and not says_number_or_no(text)


def is_question(said: str) -> bool:
    """Say whether a text that ends with a question mark asks and tells nothing.

    Example:
        >>> is_question("Would you like more?"), is_question("Did you know that refunds are free?")
        (True, False)
    """
    plain = lower(" ".join(said.split()))
    return not (says_number_or_no(plain) or _TOLD.match(plain) or _TAG.search(plain))


def _plain(text: str) -> str:
    return lower(" ".join(text.split())).strip(" .!:,;?")


def _words(text: str) -> list[str]:
    return [lower(found[0]) for found in _WORD.finditer(text)]


def _is_greeting(plain: str, said: str) -> bool:
    """Say whether a text greets, with at most two names behind."""
    greeting = _GREETING.match(plain)
    if greeting is None:
        return False
    begun = len(_words(greeting[0]))
    rest = [found[0] for found in _WORD.finditer(said)][begun:]
    names = [word for word in rest if lower(word) not in _GREETED]
    return len(rest) <= _SHORT and len(names) <= _MOST_NAMES and all(map(str.istitle, names))
