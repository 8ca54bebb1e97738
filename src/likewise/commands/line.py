"""The command line, derived from the signatures and docstrings of the commands.

A verb is one typed function. Parameters before the ``*`` are positional, flags are switches, and
the rest are options; ``--config FILE`` reads any of them from YAML. A verb that returns a number
returns the exit code; what others return is for those who call them from Python. What is heavy is
imported inside the functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import argparse
import inspect
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from docstring_parser import parse as parse_docstring
from jsonargparse import ArgumentParser

from likewise import __version__
from likewise.commands.answers import answers
from likewise.commands.ask import ask
from likewise.commands.classify import classify
from likewise.commands.cluster import cluster
from likewise.commands.duplicates import duplicates
from likewise.commands.embed import embed
from likewise.commands.errors import Interrupted
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
from likewise.commands.wording import argument_helps, argument_types, meant, plain_words

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


NEEDED = {"embed": ("out",)}
"""Options that a command line has to give, while Python may leave them out."""


class VerbParser(ArgumentParser):
    """A parser that raises what is wrong, and takes dashes for underscores in a config, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(exit_on_error=False, allow_abbrev=False, **options)

    def parse_string(self, content: str, *arguments: Any, **options: Any) -> Any:
        """Parse a config; ``label-weight:`` at the beginning of a line is ``label_weight:``."""
        content = re.sub(
            r"^[A-Za-z][\w-]*(?=\s*:)",
            lambda key: key[0].replace("-", "_"),
            content,
            flags=re.MULTILINE,
        )
        return super().parse_string(content, *arguments, **options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``likewise VERB ...``; the exit code."""
    words = with_underscores(sys.argv[1:] if arguments is None else arguments)
    parser = VerbParser(prog="likewise", description="Learn from who is alike.")
    parser.add_argument("--version", action="version", version=f"likewise {__version__}")
    verbs = parser.add_subcommands(dest="verb")
    for verb, function in VERBS.items():
        one = verbs.add_subcommand(
            verb,
            # Only the verb that is called needs its options: to work out those of all is slow.
            verb_parser(function, NEEDED.get(verb, ())) if verb in words else VerbParser(),
            help=parse_docstring(function.__doc__ or "").short_description,
        )
        one.prog = f"likewise {verb}"
    try:
        # What is not given is left to the function, which can tell a wish from a default.
        given = parser.parse_args(words, defaults=False)
    except argparse.ArgumentError as error:
        _refuse_words(str(error), words)
    options = given[given.verb].as_dict()
    options.pop("config", None)
    try:
        result = VERBS[given.verb](**options)
        return result if isinstance(result, int) else 0
    except Exception as error:
        if not is_worded(error):
            raise
        _refuse(str(error))
    except KeyboardInterrupt as stopped:
        return stopped.exit_code if isinstance(stopped, Interrupted) else 128 + signal.SIGINT


def is_worded(error: Exception) -> bool:
    """Whether an error says to a user what is wrong: those that are about arguments, those of this
    package, and those of the operating system (no space left, no permission). All others are
    mistakes of ours, and whoever mends them needs the traceback.

    >>> from likewise.commands.errors import UsageError
    >>> is_worded(UsageError("epochs is 0")), is_worded(OSError("no space left"))
    (True, True)
    >>> is_worded(KeyError("step"))
    False
    """
    ours = type(error).__module__.split(".")[0] == "likewise"
    return ours or isinstance(error, OSError)


def _refuse_words(message: str, words: Sequence[str]) -> NoReturn:
    """Say what is wrong with a command line, and where its help is."""
    verb = words[0] if words else "-"
    if verb.startswith("-"):
        _refuse("give a verb first, such as `likewise train`", "`likewise --help` lists them")
    if verb not in VERBS:
        near = meant(verb, VERBS)
        _refuse(f"there is no verb {verb!r}{near}", "`likewise --help` lists them")
    said = plain_words(message, verb, VERBS[verb])
    _refuse(said, f"`likewise {verb} --help` lists what it takes")


def _refuse(message: str, tip: str | None = None) -> NoReturn:
    """One line that says what is wrong, at most another one that says where to read on."""
    print(f"error: {message}" + (f"\n{tip}" if tip else ""), file=sys.stderr)
    raise SystemExit(2)


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


def verb_parser(function: Callable[..., Any], needed: Sequence[str] = ()) -> ArgumentParser:
    """The parser of one verb.

    Args:
        function: the verb.
        needed: options without which the command line makes no sense.
    """
    docstring = parse_docstring(function.__doc__ or "")
    helps = argument_helps(function)
    types = argument_types(function)
    parser = VerbParser(description=docstring.short_description)
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
            kind = types[name]
            how = {} if parameter.default is parameter.empty else absent
            if kind == list[Path]:
                # Words side by side: likewise report runs/a runs/b.
                kind, how = Path, {"nargs": "+"}
            parser.add_argument(name, type=kind, help=helps.get(name), **how)
        elif name in needed:
            by_hand.add(name)
            parser.add_argument(f"--{name}", type=types[name], required=True, help=helps.get(name))
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
    for action in parser._actions:
        # What help and errors show; the parser looks options up in a table of its own.
        action.option_strings = [text.replace("_", "-") for text in action.option_strings]
    return parser
