"""What all tests of Optuna's adapter have around them."""

import optuna

optuna.logging.set_verbosity(optuna.logging.CRITICAL)
