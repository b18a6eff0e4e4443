"""What may be wrong with what an objective asks for, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial

from mfhpo_optuna.games.declared import GameFidelity, Players
from mfhpo_optuna.games.space import GameSpace
from mfhpo_optuna.study.distributions import did_you_mean


def fault_of(trial: FrozenTrial, players: Players, fidelity: GameFidelity, space: GameSpace) -> str:
    """Return why a trial that succeeded is no evaluation of the game, or nothing if it is one."""
    asked = trial.distributions
    # A parameter with one value alone decides nothing, whoever suggests it.
    foreign = [name for name, how in asked.items() if name not in space and not how.single()]
    wanted = {name: f"players[{who!r}] owns {name!r}" for name, who in players.owners.items()}
    wanted |= {name: f"fidelity={name!r}" for name in fidelity.names}
    for name, declared in wanted.items():
        if name not in asked:
            return (
                f"{declared}, but the objective did not ask for it in trial {trial.number}; it "
                f"asked for {sorted(asked)}. Suggest it in every trial, such as by "
                f"trial.suggest_int({name!r}, ...), or do not declare it."
                f"{did_you_mean(name, foreign)}"
            )
    if foreign:
        return unowned(trial, foreign, players, fidelity)
    changes = (space.change(name, distribution) for name, distribution in asked.items())
    change = next(filter(None, changes), "")
    return f"trial {trial.number}: {change}" if change else ""


def unowned(
    trial: FrozenTrial, names: Sequence[str], players: Players, fidelity: GameFidelity
) -> str:
    """Return a sentence that says which suggested parameters nobody owns."""
    known = [*players.parameters, *fidelity.names]
    return (
        f"the objective suggests {', '.join(map(repr, names))} in trial {trial.number}, which no "
        f"player owns; players={ {player: list(own) for player, own in players.owned.items()} }. "
        f"Give it to one of them, or set it without suggesting it.{did_you_mean(names[0], known)}"
    )


def other_game(study_name: str, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return why a study that began with an earlier game cannot go on with this one, or nothing.

    Levels and costs are noted as soon as they are known.
    """
    # Objectives are told apart by the order of the players alone.
    have_other_order = bool(earlier) and list(earlier["players"]) != list(now["players"])
    for name in ("players", "fidelity", "levels", "costs"):
        if name not in earlier or name not in now:
            continue
        if earlier[name] != now[name] or (name == "players" and have_other_order):
            return (
                f"study {study_name!r} was begun with {name}={earlier[name]}, and cannot go on "
                f"with {name}={now[name]}; give the same, or begin another study."
            )
    return ""
