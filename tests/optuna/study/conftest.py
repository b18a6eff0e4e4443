import logging

import optuna
import pytest


@pytest.fixture
def log():
    """What Optuna logs; its logger passes nothing on, so that pytest's own fixture sees nothing."""
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger = logging.getLogger("optuna")
    verbosity = optuna.logging.get_verbosity()
    logger.addHandler(handler)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    optuna.logging.disable_default_handler()
    yield records
    optuna.logging.enable_default_handler()
    optuna.logging.set_verbosity(verbosity)
    logger.removeHandler(handler)
