"""The command line, derived from the signatures and docstrings of the commands.

A verb is one typed function. Parameters before the ``*`` are positional, flags are switches, and
the rest are options; ``--config FILE`` reads any of them from YAML. A verb that returns a number
returns the exit code; what others return is for those who call them from Python. What is heavy is
imported inside the functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from docstring_parser import parse as parse_docstring
from jsonargparse import ArgumentParser

from likewise.commands.answers import answers
from likewise.commands.ask import ask
from likewise.commands.classify import classify
from likewise.commands.cluster import cluster
from likewise.commands.duplicates import duplicates
from likewise.commands.embed import embed
from likewise.commands.errors import UsageError
from likewise.commands.evaluate import evaluate
from likewise.commands.evaluate_lm import evaluate_lm
from likewise.commands.export import export
from likewise.commands.finetune_lm import finetune_lm
from likewise.commands.recipes import recipes
from likewise.commands.report import report
from likewise.commands.reproduce import reproduce
from likewise.commands.search import search
from likewise.commands.simulate import simulate
from likewise.commands.split import split
from likewise.commands.subset import subset
from likewise.commands.train import train

VERBS: dict[str, Callable[..., Any]] = {
    "train": train,
    "embed": embed,
    "evaluate": evaluate,
    "export": export,
    "ask": ask,
    "answers": answers,
    "report": report,
    "search": search,
    "cluster": cluster,
    "classify": classify,
    "duplicates": duplicates,
    "subset": subset,
    "split": split,
    "recipes": recipes,
    "simulate": simulate,
    "reproduce": reproduce,
    "finetune-lm": finetune_lm,
    "evaluate-lm": evaluate_lm,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``likewise VERB ...``; the exit code."""
    words = with_underscores(sys.argv[1:] if arguments is None else arguments)
    parser = ArgumentParser(prog="likewise", description="Learn from who is alike.")
    verbs = parser.add_subcommands(dest="verb")
    for verb, function in VERBS.items():
        verbs.add_subcommand(
            verb,
            # Only the verb that is called needs its options: to work out those of all is slow.
            verb_parser(function) if verb in words else ArgumentParser(),
            help=parse_docstring(function.__doc__ or "").short_description,
        )
    given = parser.parse_args(words)
    options = given[given.verb].as_dict()
    options.pop("config", None)
    try:
        result = VERBS[given.verb](**options)
        return result if isinstance(result, int) else 0
    except UsageError as error:
        parser.error(str(error))


def with_underscores(arguments: Sequence[str]) -> list[str]:
    """Options as the Python functions spell them: ``--label-weight`` is ``--label_weight``.

    >>> with_underscores(["train", "my-photos", "--label-weight=0.1", "--out", "run-1"])
    ['train', 'my-photos', '--label_weight=0.1', '--out', 'run-1']
    """
    return [
        option.replace("-", "_").replace("__", "--", 1) + equals + value
        if argument.startswith("--")
        else argument
        for argument in arguments
        for option, equals, value in [argument.partition("=")]
    ]


def verb_parser(function: Callable[..., Any]) -> ArgumentParser:
    """The parser of one verb."""
    docstring = parse_docstring(function.__doc__ or "")
    helps = {part.arg_name: part.description for part in docstring.params}
    types = _argument_types(function)
    parser = ArgumentParser(description=docstring.short_description)
    parser.add_argument("--config", action="config", help="Read arguments from a YAML file.")
    # What only Python can give has no option.
    by_hand: set[str | int] = {name for name, kind in types.items() if kind is object}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in by_hand:
            continue
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            by_hand.add(name)
            # Suppressed, so that one which is not given does not undo what a config says.
            absent: dict[str, Any] = {"nargs": "?", "default": argparse.SUPPRESS}
            needed = parameter.default is parameter.empty
            kind = types[name]
            how = {} if needed else absent
            if kind == list[Path]:
                # Words side by side: likewise report runs/a runs/b.
                kind, how = Path, {"nargs": "+"}
            parser.add_argument(name, type=kind, help=helps.get(name), **how)
        elif types[name] is bool and parameter.default is False:
            by_hand.add(name)
            parser.add_argument(f"--{name}", action="store_true", help=helps.get(name))
        elif types[name] in (list[str], list[str] | None):
            # Words side by side: --sampler default captcha random.
            by_hand.add(name)
            parser.add_argument(
                f"--{name}", nargs="+", type=str, default=parameter.default, help=helps.get(name)
            )
    parser.add_function_arguments(function, skip=by_hand)
    return parser


def _argument_types(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the arguments; what is returned may be something that is not imported yet."""
    arguments = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    shell = type("Arguments", (), {"__annotations__": arguments, "__module__": function.__module__})
    return get_type_hints(shell)
