"""What a parser has against a call, in plain words and with a remedy.

jsonargparse speaks of types ("Does not validate against any of the Union subtypes"); here its
message is only read for what it is about, and the answer comes from the signature and docstring of
the verb.
"""

from __future__ import annotations

import difflib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from docstring_parser import parse as parse_docstring

ELSEWHERE = {
    "learning_rate": ("lr",),
    "lr": ("learning_rate",),
    "backbone": ("encoder",),
    "model": ("encoder",),
    "arch": ("encoder",),
    "method": ("recipe",),
    "loss": ("objective",),
    "temperature": ("objective",),
    "augmentation": ("views",),
    "transform": ("views",),
    "num_workers": ("workers",),
    "gpus": ("devices",),
    "num_nodes": ("nodes",),
    "max_epochs": ("epochs",),
    "output": ("out",),
    "k": ("top", "neighbors"),
    "top_k": ("top",),
}
"""What other programs, and other verbs, call an argument that has another name here."""


def plain_words(message: str, verb: str, function: Callable[..., Any]) -> str:
    """What is wrong with the call of a verb, and what to give instead.

    Args:
        message: what the parser said.
        verb: which verb was called.
        function: the verb.

    >>> from likewise.commands.export import export
    >>> raw = "Parser key \\"format\\":\\n  Expected a typing.Literal['onnx']. Got value: onxx"
    >>> plain_words(raw, "export", export)
    "format is 'onxx': give safetensors, timm or onnx (did you mean onnx?)"
    """
    helps = argument_helps(function)
    kinds = argument_types(function)
    if match := re.match(r'Parser key "(?:.*\.)?(\w+)":', message):
        name = match[1]
        value = re.search(r"(?:Given|Got) value: (.*)", message, re.DOTALL)
        if name in kinds and value:
            # An inner value ("Got value: foo" of a list) comes before the whole one.
            whole = re.search(r"Given value: (.*)", message, re.DOTALL) or value
            given = whole[1].strip()
            wish = wanted(name, kinds[name], helps.get(name, ""), given)
            return f"{name} is {given!r}: {wish}"
        if name == "config" and "File does not exist" in message:
            file = message.split(": ", 2)[-1].strip("'")
            return f"config is {file}: there is no such file; give a YAML file of arguments"
    if match := re.match(r"the following arguments are required: (.*)", message):
        return _missing(match[1].replace(f"{verb}.", "").split(", "), verb, function, helps)
    if match := re.match(r"unrecognized arguments: (.*)", message):
        return _unknown(match[1].split(" "), verb, function)
    if match := re.match(r"Subcommand '.*' does not accept option '(.*)'", message):
        return f"{match[1]} in the config is no argument of `likewise {verb}`" + meant(
            match[1], option_names(function)
        )
    if match := re.match(r"argument --([\w-]+)\S*: expected (one|at least one) argument", message):
        name = match[1].replace("-", "_")
        kind = kinds.get(name, Path if name == "config" else str)
        wish = wanted(name, kind, helps.get(name, ""))
        return f"{option(name)} stands without a value: {wish}"
    if match := re.match(r"argument --([\w-]+): ignored explicit argument '(.*)'", message):
        switch = option(match[1])
        return f"{switch} is a switch and takes no value: leave out {match[2]!r}, or both"
    return " ".join(message.replace('Parser key "config": ', "").split())


def argument_types(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the arguments; what is returned may be something that is not imported yet."""
    arguments = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
    shell = type("Arguments", (), {"__annotations__": arguments, "__module__": function.__module__})
    return get_type_hints(shell)


def argument_helps(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring says about each argument."""
    docstring = parse_docstring(function.__doc__ or "")
    return {part.arg_name: part.description or "" for part in docstring.params}


def option_names(function: Callable[..., Any]) -> list[str]:
    """Arguments that a command line or a config can give; what only Python can is an object."""
    return [name for name, kind in argument_types(function).items() if kind is not object]


def option(name: str) -> str:
    """An argument as it is written on the command line.

    >>> option("label_weight")
    '--label-weight'
    """
    return "--" + name.replace("_", "-")


def wanted(name: str, kind: Any, help: str = "", given: str = "") -> str:
    """What to give for an argument of a type.

    >>> wanted("projector", list[int] | None, "widths: --projector '[2048, 128]'.")
    "give a list of whole numbers, such as --projector '[2048, 128]'"
    >>> wanted("epochs", int)
    'give a whole number'
    """
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"give {listed(parts)}" + meant(given, map(str, parts), brackets=True)
    if origin is list and parts != (str,):
        inner = get_args(parts[0]) if get_origin(parts[0]) is Literal else ()
        example = _example(name, help) or f"{option(name)} '[{inner[0] if inner else '1, 2'}]'"
        of = listed(inner) if inner else {int: "whole numbers"}.get(parts[0], "numbers")
        return f"give a list of {of}, such as {example}"
    if origin is dict:
        example = _example(name, help) or f"{option(name)} '{{\"name\": 1}}'"
        return f"give names and values, such as {example}"
    simple = {int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
    return f"give {simple.get(kind, 'some text' if kind is str else 'one or more words')}"


def _example(name: str, help: str) -> str:
    """The example that a docstring has: --objective '{"temperature": 0.2}'."""
    match = re.search(rf"--{name} '[^']*'", help)
    return match[0] if match else ""


def _missing(
    names: Sequence[str], verb: str, function: Callable[..., Any], helps: dict[str, str]
) -> str:
    """What has to be given; of a single argument, also what the docstring says about it."""
    parameters = inspect.signature(function).parameters.values()
    positional = {one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD}
    shown = [name.upper() if name in positional else option(name) for name in names]
    said = f"`likewise {verb}` needs {listed(shown, 'and')}"
    if len(names) > 1:
        return said
    return f"{said}: {' '.join(helps.get(names[0], '').split()).rstrip('.')}"


def _unknown(words: Sequence[str], verb: str, function: Callable[..., Any]) -> str:
    """An option that there is not, or a word too many."""
    for word in words:
        if word.startswith("--"):
            name = word[2:].partition("=")[0]
            options = [option(known) for known in option_names(function)]
            return f"`likewise {verb}` has no option {option(name)}" + meant(option(name), options)
    return f"{' '.join(words)}: more words than `likewise {verb}` takes"


def meant(given: str, known: Iterable[str], *, brackets: bool = False) -> str:
    """The nearest of what is known, as a question; nothing where none is near.

    >>> meant("--label-wieght", ["--labels", "--label-weight"])
    ': did you mean --label-weight?'
    >>> meant("--learning-rate", ["--labels", "--lr"])
    ': did you mean --lr?'
    """
    names = list(known)
    elsewhere = ELSEWHERE.get(given.removeprefix("--").replace("-", "_"), ())
    here = [option(name) if given.startswith("--") else name for name in elsewhere]
    given = next((name for name in here if name in names), given)
    begun = [name for name in names if given and name.startswith(given)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(given, names, n=1, cutoff=0.7)
    if not near:
        return ""
    return f" (did you mean {near[0]}?)" if brackets else f": did you mean {near[0]}?"


def listed(values: Sequence[Any], word: str = "or") -> str:
    """As one says it.

    >>> listed(["export", "import"]), listed([1, 2, 3], "and")
    ('export or import', '1, 2 and 3')
    """
    *first, last = map(str, values)
    return f"{', '.join(first)} {word} {last}" if first else last
