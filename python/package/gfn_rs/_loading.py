"""Loading policies from files, for sampling without the program that trained them."""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import _borders, _gfn
from ._checks import existing_path
from ._settings import Settings
from ._suggestions import suggests_names
from ._networks import Network

if TYPE_CHECKING:
    from ._envs import Environment
    from ._policies import Policy


def note_settings(value: Any) -> Any:
    """Converts settings to JSON, from which the settings can be restored. Rules, modules and functions can't
    be restored: only the name of their class is stored."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [note_settings(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": {str(name): note_settings(item) for name, item in value.items()}}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, _gfn.Graphs):
        arrays = _borders.arrays(value)
        return {
            "graphs": {
                name: array.tolist() if isinstance(array, np.ndarray) else array
                for name, array in arrays.items()
            }
        }
    if isinstance(value, Settings) and is_dataclass(value):
        held = {field.name: note_settings(getattr(value, field.name)) for field in fields(value)}
        if hasattr(value, "_fragments"):
            held["_fragments"] = value._fragments
        return {"class": type(value).__name__, "values": held}
    return {"own": type(value).__name__}


class _CustomPart(Exception):
    """An exception for custom rules, modules or functions, which can't be restored from a file."""


def _restore_settings(note: Any) -> Any:
    import gfn_rs

    if not isinstance(note, dict):
        return note
    if "own" in note:
        raise _CustomPart(note["own"])
    if "class" in note:
        kind = vars(gfn_rs).get(note["class"])
        # The class is checked, so that a malicious file can't make Python call anything but a class of
        # settings.
        if not (isinstance(kind, type) and issubclass(kind, Settings) and is_dataclass(kind)):
            raise ValueError(
                f"the checkpoint has settings of the class {note['class']!r:.100}: expected a class of this "
                "version of gfn_rs; load the checkpoint with the version that wrote it"
            )
        values = {name: _restore_settings(value) for name, value in note["values"].items()}
        if kind.__name__ == "Fragments":
            return kind._restore(*(values[name] for name in ("max_fragments", "library", "_fragments")))
        return kind(**values)
    (name, held), *_ = note.items()
    if name == "array":
        return np.asarray(held)
    if name == "graphs":
        return _gfn.Graphs.from_arrays(**held)
    if name == "dict":
        return {key: _restore_settings(value) for key, value in held.items()}
    return {"list": list, "tuple": tuple}[name](_restore_settings(item) for item in held)


def _differences(stored: Any, given: Any, name: str, free: tuple[str, ...]) -> list[str]:
    """Lists the settings that differ between two notes, except those called one of `free`. Two custom rules,
    modules or functions count as equal, because a note has only the name of their class."""
    if all(isinstance(note, dict) and len(note) for note in (stored, given)):
        if "own" in stored and "own" in given:
            return []
        if "class" in stored and stored["class"] == given.get("class"):
            (old, new), prefix = (stored["values"], given["values"]), f"{name}." if name else ""
            return [
                one
                for key in dict.fromkeys([*old, *new])
                if key not in free
                for one in _differences(old.get(key), new.get(key), prefix + key, free)
            ]
        kinds = {"list", "tuple", "array"}
        if (one := kinds & {*stored}) and (other := kinds & {*given}):
            (old,), (new,) = [stored[key] for key in one], [given[key] for key in other]
            if len(old) == len(new):
                pairs = enumerate(zip(old, new))
                return [text for k, (a, b) in pairs for text in _differences(a, b, f"{name}[{k}]", free)]
    if stored == given:
        return []
    was, now = (
        note.get("class", note.get("own", note)) if isinstance(note, dict) else repr(note)
        for note in (stored, given)
    )
    return [f"{name or 'the class'} is {now!s:.100}, in the checkpoint {was!s:.100}"]


def _check_env(stored: Any, env: Environment, path: str | os.PathLike[str]) -> None:
    """Raises an error unless an environment has the settings that a checkpoint has. The input graphs of a
    `GraphProblem` may differ, because a policy also samples for other graphs."""
    from ._envs import Fragments, GraphProblem

    # A file of fragments is compared by its text, whatever the file's name is.
    free = {GraphProblem: ("graphs",), Fragments: ("library",)}
    names = next((names for kind, names in free.items() if isinstance(env, kind)), ())
    if differ := _differences(stored, json.loads(json.dumps(note_settings(env))), "", names):
        raise ValueError(
            f"env isn't the environment of the checkpoint {path}: {'; '.join(differ[:5])}: expected the "
            "settings of the checkpoint; leave env out unless the environment has custom rules"
        )


@suggests_names
def load(
    path: str | os.PathLike[str],
    *,
    env: Environment | None = None,
    policy: Policy | None = None,
    flow: bool = False,
    n_conditions: int = 0,
    device: str | torch.device = "cpu",
) -> Network:
    """Loads the policy of a checkpoint, a folder that `Trainer.save` wrote, as a network for a `Sampler`,
    without a trainer.

    path
        The checkpoint, or a file that `torch.save(network.state_dict(), path)` wrote. Such a file needs the
        arguments `env` and `policy`, and the same `flow` and `n_conditions` as in `Policy.build`.
    env, policy
        The environment and the policy's settings. `env` is needed if the environment has custom rules, and
        `policy` if the policy is around a custom module, because a checkpoint can't store these parts. An
        environment whose settings differ from those of the checkpoint is a `ValueError`, which names the
        settings. Rules and functions are compared by their presence alone, and the input graphs of a
        `GraphProblem` may differ. The parameters are loaded into the module of `policy` itself; pass
        `copy.deepcopy(module)` if another trainer uses this module.
    device
        The device of the network.

    >>> import tempfile
    >>> trainer = gfn.Trainer(gfn.HyperGrid(2, 3), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=8).fit(1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trainer.save(f"{folder}/checkpoint")
    ...     network = gfn.load(f"{folder}/checkpoint")
    >>> gfn.Sampler(network.env, network).sample(4).terminal.shape
    (4, 2)
    """
    path = existing_path(path)
    if os.path.isfile(path):
        if env is None or policy is None:
            raise ValueError(
                f"{path} is a file, which has only values of parameters: expected the arguments env and "
                "policy, too, or the folder of a checkpoint"
            )
        values = torch.load(path, map_location=device, weights_only=True)
        if not isinstance(values, dict) or not all(
            isinstance(value, torch.Tensor) for value in values.values()
        ):
            raise ValueError(
                f"{path} has a {type(values).__name__}: expected a file that "
                "`torch.save(network.state_dict(), path)` wrote"
            )
        double = any(value.dtype == torch.float64 for value in values.values())
        network = policy.build(env, flow=flow, n_conditions=n_conditions, device=device, double=double)
        network.load_state_dict(values)
        return network
    note = _gfn.note_of(path)
    if not isinstance(note, dict) or "made" not in note:
        raise ValueError(
            f"{path} doesn't have the settings of its policy, because Rust or an earlier version wrote it: "
            "make a trainer with these settings, and load the parameters by `Trainer.restore`"
        )
    if env is not None and "env" in note:
        _check_env(note["env"], env, path)
    parts = {"env": env, "policy": policy}
    for name, given in parts.items():
        if given is None:
            try:
                parts[name] = _restore_settings(note[name])
            except (KeyError, IndexError, TypeError) as error:
                raise ValueError(
                    f"the settings of {name} in {path} can't be read ({error!r}): pass {name} as an "
                    f"argument, load(path, {name}=...)"
                ) from error
            except _CustomPart as own:
                raise ValueError(
                    f"the checkpoint's {name} has a custom {own}, which isn't stored in the file: pass "
                    f"{name} as an argument, load(path, {name}=...)"
                ) from None
    settings: Any = {**note["made"], "device": str(device)}
    network = Network.build(parts["env"], parts["policy"], **settings)  # type: ignore[arg-type]
    network._session.restore(path)
    return network
