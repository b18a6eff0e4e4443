"""Real experiments, as the tests run them."""

from ray import tune


def tuner_of(trainable, folder, *, space=None, name=None, **options):
    """A Tuner that stores in a folder, and uses processes again; options are of ``TuneConfig``."""
    run_options = {key: options.pop(key) for key in ("stop", "failure_config") if key in options}
    if "search_alg" in options:
        options = {"scheduler": options["search_alg"].scheduler(), "num_samples": -1, **options}
    return tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(**{"reuse_actors": True, **options}),
        run_config=tune.RunConfig(name=name, storage_path=str(folder), verbose=0, **run_options),
    )
