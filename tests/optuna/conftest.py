import optuna

from tests.optuna import workers  # noqa: F401  (SQLite waits for no disk from then on)

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
