"""What the smoke tests of trained reproductions share: a small setting, trained once a session."""

from functools import cache

from likewise.reproduce import reproduction
from likewise.reproduce.encoders import Encoders
from likewise.reproduce.session import look
from likewise.reproduce.setting import Setting

SMOKE = Setting(samples=720, epochs=12, batch_size=64, trials=1)


@cache
def _encoders(setting):
    return Encoders(setting)


def encoders(setting=SMOKE):
    """The trained encoders that all tests share."""
    return _encoders(setting)


@cache
def _found(name, setting):
    entry = reproduction(name)
    samples = look(entry, encoders(setting), setting.trials)
    return samples, entry.conclude(samples)


def found(name, setting=SMOKE):
    """What a reproduction measures at the smoke setting, and what it concludes."""
    return _found(name, setting)


def check(name, text, setting=SMOKE):
    """The value of the check whose name begins so."""
    (value,) = [one.value for one in found(name, setting)[1].checks if one.name.startswith(text)]
    return value


def values(name, setting=SMOKE):
    """All figures by name."""
    return {figure.name: figure.value for figure in found(name, setting)[1].figures}
