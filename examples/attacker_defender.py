"""An attacker changes images of digits, a defender trains to withstand it. Where does that end?

The defender trains a small neural network on a random half of scikit-learn's digits, a share of
them changed as an attacker of some strength would. It gets the mean of its accuracies on the other
half: as it is, and under the attack. The attacker follows the gradient (PGD) so many steps, within
some radius of each pixel. It gets the share of digits that are misread, less a price: for the
radius, as large changes are noticed, and for its steps. Epochs of training are the fidelity. Every
trial has its own split and seed, so that all that is measured is noisy.

`NashSampler` looks for the attack and the defence that answer each other. Then the defence is put
to the test on fresh splits, beside two that seem natural: to train against the strongest attack
alone, and not to defend at all. Against each of them, the attacker may also choose anew.
"""

from __future__ import annotations

import argparse
import importlib.util
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mfhpo_optuna import NashSampler, plot_dissatisfaction, plot_equilibrium, seed_of

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

PLAYERS = {"attacker": ["radius", "steps"], "defender": ["strength", "share"]}
EPOCHS, BATCH, HIDDEN = 27, 32, 32
LARGEST = 0.3  # radius of an attack; pixels are from 0 to 1
MOST_STEPS = 5
TRAINING_STEPS = 2  # of the attacks that the defender trains against
PRICE_OF_RADIUS, PRICE_OF_STEP = 10.0, 0.02  # the former of its square
RATE, MOMENTUM, DECAY = 0.05, 0.9, 1e-4
pixels, digit = load_digits(return_X_y=True)
pixels /= 16.0


class Attack(NamedTuple):
    radius: float
    steps: int

    def on(self, network: Network, x: Array, y: Labels) -> Array:
        """Images within the radius that the network finds hard to read."""
        step = self.radius * min(1.0, 2.0 / self.steps)
        change = np.zeros_like(x)
        for _ in range(self.steps):
            change += step * np.sign(network.slopes(x + change, y).of_pixels)
            change = np.clip(change, -self.radius, self.radius)
            change = np.clip(change, -x, 1.0 - x)  # still an image
        return x + change


class Defence(NamedTuple):
    strength: float
    share: float


class Slopes(NamedTuple):
    """Derivatives of the log-loss, summed over images, but for those of each image's pixels."""

    of_weights: list[Array]
    of_pixels: Array


class Network:
    """One hidden layer."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.weights = [
            rng.normal(0.0, np.sqrt(2.0 / 64), (64, HIDDEN)),
            np.zeros(HIDDEN),
            rng.normal(0.0, np.sqrt(1.0 / HIDDEN), (HIDDEN, 10)),
            np.zeros(10),
        ]
        self._speeds = [np.zeros_like(weights) for weights in self.weights]

    def slopes(self, x: Array, y: Labels) -> Slopes:
        hidden, scores = self._layers(x)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        scores[np.arange(len(y)), y] -= 1.0
        behind = (scores @ self.weights[2].T) * (hidden > 0.0)
        of_weights = [x.T @ behind, behind.sum(axis=0), hidden.T @ scores, scores.sum(axis=0)]
        return Slopes(of_weights, behind @ self.weights[0].T)

    def learn(self, x: Array, y: Labels) -> None:
        """One step of gradient descent with momentum."""
        slopes = self.slopes(x, y).of_weights
        for weights, speed, slope in zip(self.weights, self._speeds, slopes, strict=True):
            speed *= MOMENTUM
            speed -= RATE * (slope / len(x) + DECAY * weights)
            weights += speed

    def accuracy(self, x: Array, y: Labels) -> float:
        return float(np.mean(self._layers(x)[1].argmax(axis=1) == y))

    def _layers(self, x: Array) -> tuple[Array, Array]:
        hidden = np.maximum(x @ self.weights[0] + self.weights[1], 0.0)
        return hidden, hidden @ self.weights[2] + self.weights[3]


def attacker_gets(attack: Attack, robust: float) -> float:
    """The share of digits that are misread, less the price of the attack."""
    price = PRICE_OF_RADIUS * attack.radius**2 + PRICE_OF_STEP * attack.steps
    return 1.0 - robust - price


def defender_gets(clean: float, robust: float) -> float:
    """The mean of the accuracies on digits as they are, and under the attack."""
    return 0.5 * (clean + robust)


def play(defence: Defence, attacks: list[Attack], seed: int, epochs: int = EPOCHS) -> list[float]:
    """Train on one half of the data; measure accuracies on the other: clean, under each attack."""
    rng = np.random.default_rng(seed)
    x, x_test, y, y_test = train_test_split(pixels, digit, test_size=0.5, random_state=seed)
    network = Network(rng)
    trained_against = Attack(defence.strength, TRAINING_STEPS)
    n_changed = round(defence.share * BATCH)
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for begin in range(0, len(x) - BATCH + 1, BATCH):
            rows = order[begin : begin + BATCH]
            changed, as_they_are = rows[:n_changed], rows[n_changed:]
            hard = trained_against.on(network, x[changed], y[changed])
            network.learn(np.concatenate((hard, x[as_they_are])), y[rows])
    seen = [x_test, *(attack.on(network, x_test, y_test) for attack in attacks)]
    return [network.accuracy(images, y_test) for images in seen]


def objective(trial: optuna.Trial) -> tuple[float, float]:
    radius = trial.suggest_float("radius", 0.0, LARGEST)
    steps = trial.suggest_int("steps", 1, MOST_STEPS)
    strength = trial.suggest_float("strength", 0.0, LARGEST)
    share = trial.suggest_float("share", 0.0, 1.0)
    epochs = trial.suggest_int("epochs", 3, EPOCHS)  # the sampler decides this one
    attack, defence = Attack(radius, steps), Defence(strength, share)
    clean, robust = play(defence, [attack], seed_of(trial), epochs)
    return attacker_gets(attack, robust), defender_gets(clean, robust)


def text(move: Attack | Defence) -> str:
    return ", ".join(f"{name}={value:.3g}" for name, value in move._asdict().items())


def compare(found: Attack, defences: dict[str, Defence], fresh: int) -> None:
    """Print what defences are worth on splits not yet seen, under this attack and the best one."""
    radii, steps = np.linspace(0.0, LARGEST, 13), range(1, MOST_STEPS + 1)
    grid = [Attack(float(radius), n) for radius, n in product(radii, steps)]
    first = 1_000_000
    print(f"{fresh} fresh splits, {EPOCHS} epochs:")
    for name, defence in defences.items():
        # The attack that is best by luck is not to be judged where it was lucky.
        tried = np.mean([play(defence, grid, first + i) for i in range(fresh)], axis=0)[1:]
        best = grid[np.argmax(list(map(attacker_gets, grid, tried)))]
        values = [play(defence, [found, best], first + fresh + i) for i in range(fresh)]
        clean, *robust = np.mean(values, axis=0)
        print(f"  {name}, {text(defence)}: accuracy {clean:.3f}")
        for attack, accuracy, which in zip((found, best), robust, ("found", "best"), strict=True):
            gets = attacker_gets(attack, accuracy), defender_gets(clean, accuracy)
            print(
                f"    the {which} attack, {text(attack)}: accuracy {accuracy:.3f}; the attacker "
                f"gets {gets[0]:.3f}, the defender {gets[1]:.3f}"
            )
        gains = [attacker_gets(best, b) - attacker_gets(found, f) for _, f, b in values]
        error = np.std(gains) / np.sqrt(fresh - 1) if fresh > 1 else np.inf
        print(f"    by choosing anew, the attacker gains {np.mean(gains):.3f} ± {error:.3f}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--trainings", type=int, default=100, help="budget, in whole ones (default: 100)")
    add("--fresh", type=int, default=10, help="splits for the comparison (default: 10)")
    add("--output", default="attacker_defender.html", help="default: attacker_defender.html")
    add("--seed", type=int, default=0, help="of the search (default: 0)")
    options = parser.parse_args(arguments)

    optuna.logging.set_verbosity(optuna.logging.WARNING)  # the sampler's line of progress is enough
    sampler = NashSampler(
        PLAYERS, fidelity="epochs", budget=options.trainings * EPOCHS, seed=options.seed
    )
    study = optuna.create_study(
        study_name="attack and defence", directions=["maximize", "maximize"], sampler=sampler
    )
    study.optimize(objective)  # stops by itself

    answer = sampler.equilibrium(study)
    print(f"{answer}\n")
    attack = Attack(answer.params["radius"], answer.params["steps"])
    defences = {
        "The equilibrium's defence": Defence(answer.params["strength"], answer.params["share"]),
        "Against the strongest attack alone": Defence(LARGEST, 1.0),
        "No defence": Defence(0.0, 0.0),
    }
    compare(attack, defences, options.fresh)

    if importlib.util.find_spec("plotly") is not None:
        figures = [plot_equilibrium(study), plot_dissatisfaction(study)]
        html = [figure.to_html(include_plotlyjs=figure is figures[0]) for figure in figures]
        Path(options.output).write_text("\n".join(html), encoding="utf-8")
        print(f"\n{options.output} shows how it went; open it in a browser.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
