"""Words of Japanese, Thai, Lao, Khmer and Burmese by ICU's dictionaries, for texts that have such a script.

It needs the optional library `icu4py` (15 MB with ICU and its dictionaries). Text without such a script has the same
words with and without it. Source: https://unicode-org.github.io/icu/userguide/boundaryanalysis/
"""

from importlib import import_module
from typing import Any

from dedup_service.core.errors import ConfigurationError

_LOCALE = "root"  # dictionaries are chosen by script and are the same in every locale
# Folding (NFKC) decomposes these vowels of Thai and Lao; the dictionaries have them composed.
_DECOMPOSED, _COMPOSED = ("\u0e4d\u0e32", "\u0ecd\u0eb2"), ("\u0e33", "\u0eb3")


def icu_version() -> str:
    """Return the version of ICU, which is part of the space: dictionaries differ."""
    return f"ICU {_icu4py('icu4py').icu_version}"


def icu_words(text: str) -> list[str]:
    """Return the words of a folded text and the pieces between them, which give the text together."""
    breaker = _icu4py("icu4py.breakers").WordBreaker
    for decomposed, composed in zip(_DECOMPOSED, _COMPOSED, strict=True):
        if decomposed in text:
            words = breaker(text.replace(decomposed, composed), _LOCALE)
            return [word.replace(composed, decomposed) for word in words]
    return list(breaker(text, _LOCALE))


def _icu4py(module: str) -> Any:
    """Return a module of icu4py; ConfigurationError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            "words of Japanese and Thai need icu4py, which is not installed: pip install 'twinsieve[languages]'"
        ) from error
