"""The pleasantries around an answer, whole, in English and Turkish: "I hope this helps", "Rica ederim".

A polite word says nothing about the words behind it ("Of course you can get it back"), so only whole ones count.
"""

from __future__ import annotations

import re

from llama_index_grounded.text.case import lower

__all__ = ["is_pleasantry"]

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_MOST_IN_ONE = 3

_MORE = r"(?:any|some|more|other|further|additional|else)"
_SUBJECT = r"(?:this|that|it|(?:this|the|my) (?:information|info|answer|response|reply|explanation|summary|overview))"
_ON_THIS = r"(?: (?:about|on|regarding|with) (?:this|that|it))"
_PLEASED = (
    r"(?:(?:i['’]m|i am|we['’]re|we are|i['’]d be|i would be) )?(?:always )?(?:happy|glad) to (?:help|assist)(?: you)?"
)
_FOR_ASKING = (
    r"(?: for (?:asking|reaching out|contacting us"
    r"|your (?:questions?|message|interest|patience(?: and understanding)?)))?"
)
_NOUNS = (
    r"(?: (?:questions?|help|assistance|information|info|details?|clarification|explanation|anything|to know more"
    r"|anything (?:else|more)))"
)
_WANTED = rf"(?:(?: {_MORE}){{0,3}}{_NOUNS}|(?: {_MORE}){{1,3}})"
_WANT = (
    r"(?:you (?:have|need|want|would like)|you['’]d like|there (?:is|are)|there['’]s)"
    rf"{_WANTED}(?: or (?:if you )?(?:have|need|want|would like){_WANTED})?"
    rf"(?: with anything(?: else| more)?|{_ON_THIS})?"
    r"(?: (?:i|we) can (?:help|assist)(?: you)?(?: with)?)?"
)
_WITH_MORE = rf"(?: with (?:anything(?: else| more)?|(?:{_MORE} ){{1,3}}(?:questions?|requests?)))"
_CAN_HELP = (
    rf"(?:i|we) can (?:(?:help|assist)(?: you)?(?: further)?(?:{_WITH_MORE}|{_ON_THIS})?"
    rf"|be of (?:{_MORE} ){{0,2}}(?:help|assistance|service)(?: to you)?)"
)
_INVITED = (
    r"(?:ask(?: (?:me|us|away|again))?|reach out(?: to (?:me|us))?|contact (?:me|us)|get in touch|let (?:me|us) know)"
    r"(?: (?:anytime|at any time|again))?"
)
_ASK_ME = rf"(?:please )?(?:just |feel free to )?{_INVITED}"
_IF_ASKED = (
    r"(?:(?:daha fazla|başka|başka bir|herhangi bir|ek) )?"
    r"(?:(?:soru|sorun|soruların|sorunuz|sorularınız|sorular) (?:olursa|varsa|olması halinde|olduğunda)"
    r"|(?:bilgiye|detaya|yardıma|bir şeye) (?:ihtiyacınız (?:olursa|varsa)|ihtiyaç duyarsanız)"
    r"|(?:bilgi|detay|yardım) isterseniz)"
)
_WRITE_ME = (
    r"(?:lütfen )?(?:her zaman )?(?:çekinmeden )?(?:(?:bana|bize) )?"
    r"(?:sorun|sorabilirsiniz|yazın|yazabilirsiniz|ulaşın|ulaşabilirsiniz|haber verin|çekinmeyin|sormaktan çekinmeyin"
    r"|(?:(?:benimle|bizimle) )?iletişime (?:geçin|geçebilirsiniz)|(?:size )?yardımcı (?:olurum|olabilirim)|buradayım)"
)
_HELPS = (
    r"(?:(?:helps?|helped|will help|has helped)(?: you)?"
    r"|(?:is|was|has been|will be)(?: very)? (?:helpful|useful|clear|of help)(?: (?:to|for) you)?"
    r"|(?:answers?|answered|clarifies|clarified) (?:your questions?|things|it|that|everything)"
    r"|(?:clears|cleared) (?:it|things|that|everything) up)"
)
_ON_WHAT = (
    rf"(?: if (?:{_WANT}|{_CAN_HELP}|{_SUBJECT} {_HELPS})"
    rf"| (?:about|with) (?:{_MORE} ){{0,2}}questions?| if anything is unclear"
    rf"| for (?:{_MORE} ){{1,2}}(?:information|info|details?|help|assistance|clarification))"
)
_TURKISH_HOPE = (
    r"umar[ıi][mz](?: (?:bu(?: (?:bilgi|bilgiler|cevap|yanıt|açıklama))?|cevabım|yanıtım|verdiğim bilgiler))?(?: size)?"
    r" (?:(?:yardımcı|faydalı|yararlı|açıklayıcı)"
    r" (?:olur|oldu|olmuştur|olabilmiştir|olabilmişimdir|olmuşumdur|olabildim)"
    r"|işinize (?:yarar|yaramıştır)|sorunuzu (?:yanıtlar|yanıtlamıştır|cevaplar|cevaplamıştır))"
)
_TURKISH_HELP = (
    r"(?:size )?yardımcı (?:olabildiysem ne mutlu(?: bana)?|(?:olabildiğimi|olduğumu) umuyorum"
    r"|olayım|olabilirim|olurum|olmaktan (?:memnuniyet|mutluluk) (?:duyarım|duyarız))"
)
_PLEASANTRIES = (
    r"sure(?: thing)?|certainly|of course|absolutely|my pleasure|(?:great|good) question",
    r"you(?:['’]re| are)(?: very| most)? welcome",
    rf"(?:many )?thanks(?: (?:again|so much|a lot))?{_FOR_ASKING}",
    rf"thank you(?: again)?(?: (?:so|very) much)?{_FOR_ASKING}",
    rf"{_PLEASED}(?: with (?:that|this|your questions?)|{_WITH_MORE})?|(?:i|we) can help(?: you)? with (?:this|that)",
    r"(?:i['’]m|i am|we['’]re|we are)(?: always)? here to help(?: you)?",
    rf"(?:(?:i|we) )?(?:really )?hope (?:{_SUBJECT} {_HELPS}(?: and {_HELPS})?|you find {_SUBJECT} (?:helpful|useful))",
    rf"{_ASK_ME}{_ON_WHAT}(?: (?:anytime|at any time))?|(?:please )?(?:feel free to {_INVITED}|let (?:me|us) know)",
    rf"(?:please )?(?:if|should) {_WANT}(?: {_ASK_ME}| {_PLEASED})?",
    r"tabii?(?: ki)?|elbette|memnuniyetle|rica ederi[mz](?: her zaman)?",
    r"(?:(?:sorunuz|sorduğunuz) için )?(?:çok )?(?:teşekkürler|teşekkür ederi[mz])",
    rf"{_TURKISH_HOPE}|{_TURKISH_HELP}|{_IF_ASKED}(?: {_WRITE_ME})?",
)
# That there are few in one sentence also bounds what the pattern tries.
_POLITE = re.compile(rf"(?:(?:{'|'.join(_PLEASANTRIES)})(?: (?:and )?|\Z)){{1,{_MOST_IN_ONE}}}\Z")


def is_pleasantry(said: str) -> bool:
    """Say whether a sentence is a pleasantry, or up to three of them; signs between words do not count.

    Example:
        >>> is_pleasantry("Of course, happy to help!"), is_pleasantry("Of course, happy to refund it!")
        (True, False)
    """
    return _POLITE.match(" ".join(lower(found[0]) for found in _WORD.finditer(said))) is not None
