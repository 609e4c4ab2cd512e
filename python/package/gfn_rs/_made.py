"""What a trainer was made with: it can be read, and not changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NoReturn

if TYPE_CHECKING:
    from .conditioning import Conditioning
    from .envs import Environment
    from .objectives import Objective
    from .policies import Policy
    from .schedules import Number
    from .sources import Average, Data, FocusInHindsight, FreshSource, Hindsight, LocalSearch, Mala, Replay, Search, Source, Teacher, TransitionBatches


class Made:
    """The settings of a trainer, by the names that it takes. They are settled: none is set, and a trainer isn't copied."""

    env: Environment
    reward: Any
    policy: Policy
    objective: Objective
    batch_size: int
    lr: float
    log_z_lr: float
    lr_scale: Number | None
    weight_decay: float
    max_norm: float | None
    epsilon: Number | None
    temperature: Number
    exit_bias: Number
    noise: Number
    replay: Replay | None
    data: Data | None
    source: Source | None
    fresh: FreshSource | None
    local_search: LocalSearch | None
    teacher: Teacher | None
    thompson: float | None
    search: Search | Mala | None
    average: Average | None
    hindsight: Hindsight | FocusInHindsight | None
    regression: str
    chunk: int | None
    transitions: TransitionBatches | None
    reward_exponent: Number
    max_steps: int
    conditions: Callable[..., Any] | Conditioning | None
    seed: int
    device: str
    double: bool

    def __setattr__(self, name: str, value: Any) -> None:
        if "_session" in vars(self) and not name.startswith("_"):
            if name in Made.__annotations__:
                raise AttributeError(
                    f"{name} of a trainer is settled when it is made, and setting it would change nothing: make a new trainer of other "
                    "settings, which takes the parameters over from a checkpoint by `restore`"
                )
            # A class of somebody's own has attributes of its own.
            ours = [kind for kind in type(self).__mro__ if kind.__module__.partition(".")[0] == __package__]
            if type(self) in ours or any(name in vars(kind) for kind in ours):
                raise AttributeError(f"a trainer has no {name} that can be set: its settings are given when it is made")
        super().__setattr__(name, value)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a trainer isn't copied or pickled: `save(path)` writes a checkpoint, from which a trainer of the same settings goes on by "
            "`resume(path)`; what `exact` and the evaluations give can be pickled"
        )

    def __repr__(self) -> str:
        what = f"{self.env!r}, {self.objective!r}, {self.policy!r}"
        return f"{type(self).__name__}({what}, batch={self.batch_size!r}, lr={self.lr!r}, epsilon={self.epsilon!r})"
