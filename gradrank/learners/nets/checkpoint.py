"""The state of a net's training on disk, so that a killed run goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradrank.errors import ModelError, TrainingError
from gradrank.learners.nets.training import NetState, NetTrainer
from gradrank.models.nets.tensor_file import read_tensor_bytes, tensor_bytes
from gradrank.models.ranker import plain
from gradrank.runtime.files import replacing

_FORMAT = "gradrank-net-checkpoint"
_PLAIN = tuple(item.name for item in fields(NetState) if item.name not in ("weights", "best_weights", "optimizer"))


def read_state(path: str | Path, run: Mapping[str, Any]) -> NetState | None:
    """The state that a run with the same settings and data left; None if there is none."""
    path = Path(path)
    if not path.exists():
        return None
    try:
        manifest, tensors = read_tensor_bytes(path.read_bytes())
        if manifest["format"] != _FORMAT:
            raise ValueError
        kept, state = manifest["run"], NetState(**manifest["state"])
        state.curves = {n: {m: [float(x) for x in c] for m, c in p.items()} for n, p in state.curves.items()}
        state.weights, state.best_weights = _part(tensors, "now."), _part(tensors, "best.")
        state.optimizer = _optimizer_of(manifest["groups"], tensors)
    except (OSError, ValueError, KeyError, TypeError, ModelError):
        raise TrainingError(f"{path}: is not a checkpoint that can be read; delete it to start anew") from None
    wanted = plain(dict(run))
    differing = [key for key in sorted({*wanted, *kept}) if kept.get(key) != wanted.get(key)]
    if differing:
        raise TrainingError(
            f"{path}: belongs to another run ({', '.join(differing)} differ); delete it or choose another file"
        )
    return state


def state_writer(
    path: str | Path, run: Mapping[str, Any], every: int, total: int
) -> Callable[[NetState, NetTrainer], None]:
    """Writes the state every so many epochs, each time as a whole."""

    def write(state: NetState, trainer: NetTrainer) -> None:
        if state.epoch % every and state.epoch != total:
            return
        trainer.save_to(state)
        manifest = {
            "format": _FORMAT,
            "run": plain(dict(run)),
            "state": plain({name: getattr(state, name) for name in _PLAIN}),
            "groups": plain(state.optimizer["param_groups"]),
        }
        tensors = {f"now.{name}": value.numpy() for name, value in state.weights.items()}
        tensors |= {f"best.{name}": value.numpy() for name, value in state.best_weights.items()}
        for number, values in state.optimizer["state"].items():
            tensors |= {
                f"optimizer.{number}.{name}": _array(value) for name, value in values.items() if value is not None
            }
        content = tensor_bytes(manifest, tensors)
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    return write


def _array(value: Any) -> NDArray[Any]:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _part(tensors: Mapping[str, NDArray[Any]], start: str) -> dict[str, torch.Tensor]:
    return {
        name.removeprefix(start): torch.from_numpy(np.array(value))
        for name, value in tensors.items()
        if name.startswith(start)
    }


def _optimizer_of(groups: list[dict[str, Any]], tensors: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    return {"state": state, "param_groups": groups}
