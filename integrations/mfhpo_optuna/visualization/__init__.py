"""Figures, one module each; `mfhpo_optuna.visualization.plot_race(study)` returns one."""
