"""Answers to mathematical questions: how they are found in a text, and when two are the same."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?(?:/\d+)?")
_ANNOUNCED = re.compile(r"(?:####|the (?:final )?answer is:?)\s*", re.IGNORECASE)


def number_in(text: str) -> str | None:
    """The final number of a GSM8K answer, without signs for thousands and money.

    What follows ``####`` or "The answer is" counts, and the last number of the text where there
    is neither.

    Example:
        >>> number_in("5 dozen are 60 eggs. #### 1,060")
        '1060'
        >>> number_in("He pays $12.50 in the end.")
        '12.5'
    """
    announced = list(_ANNOUNCED.finditer(text))
    found = None
    if announced:
        found = _NUMBER.search(text[announced[-1].end() :])
    if found is None:
        every = list(_NUMBER.finditer(text))
        found = every[-1] if every else None
    return None if found is None else _plain(found.group())


def boxed_in(text: str) -> str | None:
    r"""The content of the last \boxed{...} of a MATH solution, or what follows "The answer is".

    Example:
        >>> boxed_in(r"so $x = \boxed{\frac{1}{2}}$.")
        '\\frac{1}{2}'
    """
    begin = max(text.rfind(r"\boxed{"), text.rfind(r"\fbox{"))
    if begin >= 0:
        start = text.index("{", begin) + 1
        depth = 1
        for i in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[i], 0)
            if depth == 0:
                return text[start:i]
    announced = list(_ANNOUNCED.finditer(text))
    if announced:
        return text[announced[-1].end() :].split("\n")[0].strip().rstrip(".").strip("$") or None
    return None


def same_number(left: str | None, right: str | None) -> bool:
    """Whether two GSM8K answers are equal as numbers.

    Example:
        >>> same_number("1060", "1060.0"), same_number(None, "7")
        (True, False)
    """
    if left is None or right is None:
        return False
    a, b = _value(left), _value(right)
    if a is None or b is None:
        return left == right
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def same_expression(left: str | None, right: str | None) -> bool:
    r"""Whether two MATH answers are the same after spelling is made alike.

    The rules of the MATH benchmark's own scorer: spaces, units, degrees, percent, ``\left`` and
    ``\right`` go, ``\dfrac`` and ``\tfrac`` are ``\frac``, ``a/b`` of whole numbers is
    ``\frac{a}{b}``, ``.5`` is ``0.5``, and ``x = 5`` is ``5``. It does no algebra.

    Example:
        >>> same_expression(r"\dfrac12", "1/2"), same_expression("x = 5", r"5^\circ")
        (True, True)
    """
    if left is None or right is None:
        return False
    a, b = _spelled(left), _spelled(right)
    return a == b or (_value(a) is not None and same_number(a, b))


def _plain(number: str) -> str:
    number = number.replace("$", "").replace(",", "")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return number


def _value(number: str) -> float | None:
    try:
        top, _, bottom = number.replace(",", "").partition("/")
        return float(top) / float(bottom) if bottom else float(top)
    except (ValueError, ZeroDivisionError):
        return None


def _spelled(answer: str) -> str:
    text = answer.strip().rstrip(".")
    for piece in ("\n", r"\!", r"\,", r"\;", r"\left", r"\right", r"^\circ", r"^{\circ}", r"\$"):
        text = text.replace(piece, "")
    text = text.replace(r"\%", "").replace("%", "").replace("$", "")
    text = re.sub(r"(?<=.)\\text\{[^{}]*\}$", "", text.strip())  # a unit at the end
    text = re.sub(r"\\(?:text|mathrm|mbox)\{([^{}]*)\}", r"\1", text)
    text = text.replace("dfrac", "frac").replace("tfrac", "frac")
    text = re.sub(r"\s+", "", text)
    sides = text.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        text = sides[1]
    text = re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac(\d)\{", r"\\frac{\1}{", text)
    text = re.sub(r"\\sqrt(\w)", r"\\sqrt{\1}", text)
    text = re.sub(r"^(-?\d+)/(-?\d+)$", r"\\frac{\1}{\2}", text)
    return re.sub(r"(?<!\d)\.(\d)", r"0.\1", text)
