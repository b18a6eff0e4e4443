"""`IISEScheduler`: IISE over trials that report progress, pause at levels, and go on later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from mfhpo import IISE
from mfhpo._validation import check_count, check_name, check_seed
from mfhpo.experiment.kinds.race import DeclaredRace
from mfhpo.experiment.kinds.runner import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import EstimatedNoise
from mfhpo.racing.options import IISEOptions, runs, with_defaults
from mfhpo_ray.experiment.configurations import described
from mfhpo_ray.experiment.options import LevelOptions
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Config
from mfhpo_ray.schedulers.level_race import Meter, levels_of
from mfhpo_ray.schedulers.runs import ADDED

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _IISE(IISEOptions, LevelOptions): ...


@runs(IISE, _IISE, epsilon=None, measure=None, replicate="seed")
class IISEScheduler(ArmScheduler):
    """Races configurations over replicates, short runs first, and certifies the best.

    A trial is one replicate of an arm: the arm is the configuration without the replicate's key.
    Trials run to a level of `time_attr` and pause there; `mfhpo.IISE` decides which one to start,
    to resume or to stop. The race ends when one arm is left, the leader is within `epsilon` of all
    others, or no replicates are left. What `recommendation` guarantees is what `IISESearch` does.

    Where at least half of the configurations have one trial, and no bias is declared, it takes the
    place of Tune's ASHA: a model promotes trials from level to level on a budget, and new trials
    with other seeds compare the finalists. The answer is that of `SpaceSearch`.

    Parameters
    ----------
    time_attr
        What the levels are of, in every result: a number that grows while a trial trains.
    max_t
        The time at which a trial is complete; the levels are then geometric. None: 100, as for
        Ray's ASHA, if no `levels` are given.
    costs
        Cost of a trial up to each level; "measured" for seconds; None for proportional to the
        level. A trial that goes on from a checkpoint is charged with the increment.
    seed
        Of what is drawn: a pilot, or the choices of a model.
    **options
        See `mfhpo.racing.options.IISEOptions`. Without `measure`, the winner gets ten values at the
        last level, or as many as each arm has.

    Notes
    -----
    With one trial each, the budget is that of six full trainings and a quarter of the
    configurations, or 1.4 times as much where trials begin anew after a pause. Options of the
    policy have no part then. Three tenths are for the finalists, which are evaluated again if all
    trials have a whole number under the replicate's key. Trials that a search algorithm suggests
    one at a time need replicates.

    Otherwise, ``{"seed": tune.grid_search(list(range(20)))}`` gives each configuration twenty
    replicates; ``BasicVariantGenerator(constant_grid_search=True)`` keeps a sampled configuration
    for all of them. Trials without checkpoints begin anew at each level, which is counted.
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        max_t: int | None = None,
        *,
        costs: Sequence[float] | Literal["measured"] | None = None,
        seed: int = 0,
        **options: Unpack[_IISE],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(own)
        check_name("time_attr", time_attr, "the key of a result")
        fidelity = Fidelity(time_attr, levels_of(max_t, own), costs)
        self._meter = Meter(fidelity)
        self._measure = own["measure"]
        if self._measure is not None:
            check_count("measure", self._measure, 1)
        own["measure"] = self._measure or 10
        self._race = DeclaredRace.of(fidelity, own, {}, IISE, "")
        self._race.rehearse(fidelity.levels or ())
        self._seed = check_seed(seed)

    def _settings(self, candidates: Sequence[Config], n_arms: int) -> Settings:
        race, declared = self._race, self._race.declaration
        if len(candidates) == n_arms:
            given = (run.arm for run in self._runs if not run.trial.trial_id.endswith(ADDED))
            replicates = list(Counter(given).values())
            is_to_promote = 2 * replicates.count(1) >= len(replicates)
            # What has to be estimated from replicates.
            undeclared = ["sigma"] if isinstance(declared.noise, EstimatedNoise) else []
            if declared.bias is None and race.options["variant"] not in ("se", "mfe"):
                undeclared.append("bias")
            if is_to_promote and "bias" in undeclared:
                options = {**race.options, "seed": self._seed}
                return self._promoted(candidates, race.fidelity, declared.noise, **options)
            least, needed = min(replicates), race.options["pilot_pulls"]
            if undeclared and least < needed:
                key = self._replicate_keys[0]
                raise ValueError(
                    f"{' and '.join(undeclared)} cannot be estimated: some configurations have "
                    f"{least} of pilot_pulls={needed} replicates. Give param_space {key!r}: "
                    f"tune.grid_search(list(range(20))), or declare {'=..., '.join(undeclared)}=..."
                )
            if self._measure is None:
                race = replace(race, options={**race.options, "measure": min(10, least)})
        return race.settings(
            candidates,
            self._meter.levels,
            races=True,
            n_arms=n_arms,
            sign=self._sign,
            seed=self._seed,
            describe=described,
        )
