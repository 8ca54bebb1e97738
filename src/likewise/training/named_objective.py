"""An objective by its name, with the arguments that somebody gives."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import Any

import likewise.objectives
from likewise.objectives import Objective


def objective_class(name: str) -> type[Objective]:
    """The objective of that name."""
    kind = getattr(likewise.objectives, name, None)
    if not (inspect.isclass(kind) and issubclass(kind, Objective)):
        raise ValueError(f"objective is {name!r}: give a class of likewise.objectives")
    return kind


def accepted_arguments(kind: type[Objective], given: Mapping[str, Any]) -> list[str]:
    """The names that an objective takes, those that it passes on to its base class included.

    Args:
        kind: the class.
        given: arguments that it takes, of which some may be required.

    >>> accepted_arguments(objective_class("NTXent"), {})[:3]
    ['temperature', 'denominator', 'similarity']
    """
    names: list[str] = []
    for base in kind.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = [*inspect.signature(vars(base)["__init__"]).parameters.values()][1:]  # no self
        passed_on = [one for one in parameters if one.kind is one.VAR_KEYWORD]
        for one in parameters:
            if one not in passed_on and (base is kind or _passes_on(kind, given, one)):
                names.append(one.name)
        if not passed_on:
            break
    return [*dict.fromkeys(names)]


def _passes_on(kind: type[Objective], given: Mapping[str, Any], one: inspect.Parameter) -> bool:
    """Whether a class takes an argument of its base class, and has not set it itself."""
    if one.default is one.empty:
        return False
    try:
        kind(**{**given, one.name: one.default})
    except TypeError:
        return False
    except ValueError:
        pass  # the value will not do, and the name does
    return True


def build_objective(kind: type[Objective], options: Mapping[str, Any]) -> Objective:
    """The objective with these arguments, or an error that names the one it does not know."""
    try:
        objective = kind(**options)
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None:
            raise ValueError(f"objective: {kind.__name__}: {error}") from None
        others = {name: value for name, value in options.items() if name != unknown[1]}
        known = accepted_arguments(kind, others)
        near = difflib.get_close_matches(unknown[1], known, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"objective: {kind.__name__} has no argument {unknown[1]!r}{meant}; it takes "
            f"{', '.join(known)}"
        ) from None
    # The loss of every logged step is looked at instead: no read-back at every step.
    objective.check_finite = False
    return objective
