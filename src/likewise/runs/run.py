"""The run folder: what a training leaves behind, and how to load it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from likewise.runs.files import write_atomically

if TYPE_CHECKING:
    from likewise.data import Source
    from likewise.models import Encoder

CONFIG = "config.yaml"
ENCODER = "encoder.safetensors"
SUMMARY = "summary.json"
DATA = "data.json"
CHECKPOINT = Path("checkpoints") / "last.ckpt"
_PREPARATION = "likewise_preparation"


@dataclass(frozen=True)
class Preparation:
    """How pixels become the encoder's input."""

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


class Run:
    """A folder that `likewise train` has written.

    ======================  ========================================================
    config.yaml             the arguments, all of them: ``train --config`` repeats it
    encoder.safetensors     the encoder, with what it needs to be built again
    checkpoints/last.ckpt   everything that resuming needs
    diagnostics.jsonl       rank, spectra, alignment and the like while it trained
    metrics.csv             loss, terms, effective rank and kNN accuracy by step
    data.json               which images it was trained on
    summary.json            what came out
    ======================  ========================================================
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        try:
            kept, found = self.config, self.summary
        except (OSError, ValueError):
            return f"Run({str(self.path)!r})"
        about = [f"{kept.get('recipe')} with {kept.get('encoder')}"]
        about.append(f"{found['epochs']} epochs" if found else "not finished")
        if "knn" in found:
            about.append(f"kNN {found['knn']:.1%}")
        return f"Run({str(self.path)!r}: {', '.join(about)})"

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """The run at `path`, or an error that says what is missing."""
        run = cls(path)
        if not run.path.is_dir():
            raise ValueError(f"{path} is no folder: give one that `likewise train --out` wrote")
        if not (run.path / CONFIG).is_file():
            raise ValueError(f"{path} holds no {CONFIG}: it is not a run of `likewise train`")
        return run

    @property
    def checkpoint(self) -> Path:
        """Where training goes on from."""
        return self.path / CHECKPOINT

    @property
    def config(self) -> dict[str, Any]:
        """The arguments of `likewise train`, all of them."""
        import yaml

        path = self.path / CONFIG
        try:
            config = yaml.safe_load(path.read_text())
        except yaml.YAMLError as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if not isinstance(config, dict):
            raise ValueError(f"{path} holds no arguments")
        return config

    def write_config(self, config: dict[str, Any]) -> None:
        """Write the arguments."""
        import yaml

        with write_atomically(self.path / CONFIG) as aside:
            aside.write_text(yaml.safe_dump(config, sort_keys=False))

    @property
    def data_fingerprint(self) -> str | None:
        """Which images the run was trained on, or None where that was not written."""
        return self._json(DATA).get("keys")

    @property
    def has_graph(self) -> bool:
        """Whether it was trained on a graph that was given from Python."""
        return bool(self._json(DATA).get("graph"))

    @property
    def known_fingerprint(self) -> dict[str, Any]:
        """Which of the images could be read, their pixels, labels and graph; empty: not written."""
        return dict(self._json(DATA).get("known", {}))

    def write_data(
        self, source: Source, *, graph: bool = False, known: dict[str, Any] | None = None
    ) -> None:
        """Write which images it is trained on, whether a graph was given for them, and what else
        has to be the same where it is resumed."""
        about = {
            "data": source.description,
            "images": len(source),
            "keys": source.fingerprint(),
            "graph": graph,
            "known": known or {},
        }
        with write_atomically(self.path / DATA) as aside:
            aside.write_text(json.dumps(about, indent=1) + "\n")

    @property
    def summary(self) -> dict[str, Any]:
        """What came out; empty while training has not ended."""
        return self._json(SUMMARY)

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            return {}
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} cannot be read ({error}): remove it") from error
        return found

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write what came out."""
        with write_atomically(self.path / SUMMARY) as aside:
            aside.write_text(json.dumps(summary, indent=1) + "\n")

    def write_encoder(self, encoder: Encoder, preparation: Preparation) -> None:
        """Write the encoder and how to feed it."""
        save_encoder(self.path / ENCODER, encoder, preparation)

    def encoder(self, device: torch.device | str = "cpu") -> tuple[Encoder, Preparation]:
        """The trained encoder in evaluation mode, and how to feed it."""
        path = self.path / ENCODER
        if not path.is_file():
            raise ValueError(
                f"{self.path} holds no {ENCODER}: its training has not come to a first checkpoint; "
                f"`likewise train --resume {self.path}` goes on"
            )
        encoder, preparation = read_encoder(path)
        return encoder.to(device), preparation


def save_encoder(path: Path, encoder: Encoder, preparation: Preparation) -> None:
    """An encoder as one safetensors file whose metadata say how to build and feed it."""
    from safetensors.torch import save_file

    weights = {
        name: value.detach().cpu().contiguous() for name, value in encoder.state_dict().items()
    }
    about = {**encoder.metadata(), _PREPARATION: json.dumps(asdict(preparation))}
    with write_atomically(path) as aside:
        save_file(weights, aside, metadata=about)


def read_encoder(path: Path | str) -> tuple[Encoder, Preparation]:
    """The encoder of :func:`save_encoder`, in evaluation mode."""
    from safetensors import safe_open

    from likewise.models import load_encoder

    encoder = load_encoder(path)
    with safe_open(str(path), framework="pt") as file:
        about = json.loads((file.metadata() or {}).get(_PREPARATION, "null"))
    if about is None:
        raise ValueError(f"{path} does not say how images are prepared for it: it is not of a run")
    preparation = Preparation(about["size"], tuple(about["mean"]), tuple(about["std"]))
    return encoder.eval(), preparation
