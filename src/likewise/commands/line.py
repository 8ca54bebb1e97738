"""The command line, derived from the signatures and docstrings of the commands.

A verb is one typed function. Parameters before the ``*`` are positional, flags are switches, and
the rest are options; ``--config FILE`` reads any of them from YAML. The return value is the exit
code. What is heavy is imported inside the functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import get_type_hints

from docstring_parser import parse as parse_docstring
from jsonargparse import ArgumentParser

from likewise.commands.errors import UsageError
from likewise.commands.evaluate_lm import evaluate_lm
from likewise.commands.finetune_lm import finetune_lm
from likewise.commands.reproduce import reproduce

VERBS: dict[str, Callable[..., int]] = {
    "reproduce": reproduce,
    "finetune-lm": finetune_lm,
    "evaluate-lm": evaluate_lm,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``likewise VERB ...``; the exit code."""
    parser = ArgumentParser(prog="likewise", description="Learn from who is alike.")
    verbs = parser.add_subcommands(dest="verb")
    for verb, function in VERBS.items():
        verbs.add_subcommand(
            verb,
            verb_parser(function),
            help=parse_docstring(function.__doc__ or "").short_description,
        )
    given = parser.parse_args(arguments)
    options = given[given.verb].as_dict()
    options.pop("config", None)
    try:
        return VERBS[given.verb](**options)
    except UsageError as error:
        parser.error(str(error))


def verb_parser(function: Callable[..., int]) -> ArgumentParser:
    """The parser of one verb."""
    docstring = parse_docstring(function.__doc__ or "")
    helps = {part.arg_name: part.description for part in docstring.params}
    types = get_type_hints(function)
    parser = ArgumentParser(description=docstring.short_description)
    parser.add_argument("--config", action="config", help="Read arguments from a YAML file.")
    by_hand: set[str | int] = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            by_hand.add(name)
            needed = parameter.default is parameter.empty
            parser.add_argument(
                name,
                type=types[name],
                nargs=None if needed else "?",
                default=None if needed else parameter.default,
                help=helps.get(name),
            )
        elif types[name] is bool and parameter.default is False:
            by_hand.add(name)
            parser.add_argument(f"--{name}", action="store_true", help=helps.get(name))
    parser.add_function_arguments(function, skip=by_hand)
    return parser
