"""Figures of plotly: `mfhpo_optuna.plot_race(study)` and others return one."""
