"""Pages of the reference: one for each public name, and an overview. mkdocs calls the functions.

What people use first comes first. A public name without a page is an error, and so is a page
without a public name.
"""

from functools import cache
from pathlib import Path

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

PAGES = {
    "Samplers": {
        "mfhpo_optuna": """
            SearchSampler MFSampler IISESampler MFTopTwoSampler MFGradSampler MFLUCBSampler
            RCUCBSampler ZoomingRCUCBSampler MFUCBSampler MFEliminationSampler NashSampler""",
    },
    "Arguments of samplers": {
        "mfhpo_optuna.samplers.options": "SamplerOptions",
        "mfhpo.search": "SearchOptions",
        "mfhpo.racing.options": """
            RaceOptions BestArmOptions ChoiceOptions IISEOptions MFTopTwoOptions MFGradOptions
            MFLUCBOptions MFUCBOptions MFEliminationOptions BlockOptions""",
    },
    "Certificates and answers": {
        "mfhpo_optuna": "certify StudyCertificate",
        "mfhpo.experiment": "Answer",
    },
    "Pruners": {"mfhpo_optuna": "IISEPruner MFEliminationPruner TimeLimitPruner"},
    "Limits of time and memory": {"mfhpo_optuna": "time_limited TimeLimited"},
    "When to stop": {"mfhpo_optuna": "StopWhenSettled"},
    "In the objective": {
        "mfhpo_optuna": "seed_of training_of ForgottenReplicateWarning",
        "mfhpo_optuna.lightgbm": "train_from_checkpoint",
    },
    "What is known before": {
        "mfhpo_optuna": "Fidelity draw_arms enqueue_portfolio",
        "mfhpo.portfolios": "portfolio MODELS",
        "mfhpo.search": "EarlierResults",
    },
    "Pictures and reports": {
        "mfhpo_optuna": """
            write_report publish_to_dashboard plot_race plot_gain plot_equilibrium
            plot_dissatisfaction""",
    },
    "Ray Tune": {
        "mfhpo_ray": """
            SpaceSearch MFSearch IISESearch MFGradSearch MFLUCBSearch RCUCBSearch
            ZoomingRCUCBSearch MFUCBSearch MFEliminationSearch IISEScheduler
            MFEliminationScheduler RCUCBScheduler PullScheduler StopWhenSettled certify
            TuneCertificate recommendation""",
    },
    "scikit-learn": {
        "mfhpo_sklearn": "SpaceSearchCV MFSearchCV IISESearchCV certify SearchCertificate",
    },
    "Core: policies": {
        "mfhpo": """
            IISE BlockElimination MFTopTwo
            MFGrad MFLUCB MFUCB MFElimination Race Policy PolicyChoice recommend_policy
            predict_cost CostPrediction cost_lower_bound""",
    },
    "Core: what is known": {
        "mfhpo": """
            Problem Bias Noise Gaussian SubGaussian Bounded EstimatedNoise Radius
            HoeffdingRadius EmpiricalBernsteinRadius MixtureRadius StudentMixtureRadius""",
    },
    "Core: what is told": {
        "mfhpo": """
            Pull Observation Recommendation Labels ArmWithdrawnWarning BiasContradictedWarning
            NoNoiseWarning NoiseContradictedWarning""",
    },
    "Core: time limits": {
        "mfhpo": "RCUCB ZoomingRCUCB",
        "mfhpo.censored": "CensoredPolicy Charge Linear Confidence Survival SurvivalPoint",
    },
    "Core: games": {
        "mfhpo.games": """
            MFUCBPNE UCBPNE GamePolicy Equilibrium Deviation Dissatisfaction Query Utility
            Hyperparameters MultiOutputGP""",
    },
    "Core: experiments": {
        "mfhpo.experiment": """
            Experiment RaceSettings SearchSettings ShortlistSettings LimitSettings GameSettings
            LateSettings Assignment Wait Done Refused Event Begun Found Ended Lost Joined Concluded
            event_of Configurations key_of DistributionSpace""",
    },
}
# All that these export has a page. They may have other names for the same.
PACKAGES = (
    *("mfhpo", "mfhpo.censored", "mfhpo.experiment", "mfhpo.games", "mfhpo.portfolios"),
    *("mfhpo_optuna", "mfhpo_optuna.lightgbm", "mfhpo_ray", "mfhpo_sklearn"),
)
OPTIONS = "{heading_level: 1, show_root_full_path: true}"
NO_PAGE = {"mfhpo.__version__"}
# The theme's smallest width with a sidebar is 1,220 pixels, in units of 16. Here it is 1,200.
WIDTHS = {"76.25em": "75em", "76.234375em": "74.984375em"}


def on_config(config):
    """Add the pages to the navigation."""
    section = next(entry for entry in config.nav if "Reference" in entry)
    section["Reference"] += [
        {group: [{name: path_of(module, name)} for module, name in names_of(group)]}
        for group in PAGES
    ]


def on_files(files, config):
    """Add the pages themselves."""
    check()
    for group in PAGES:
        for module, name in names_of(group):
            text = f"::: {module}.{name}\n    options: {OPTIONS}\n"
            files.append(File.generated(config, path_of(module, name), content=text))
    files.append(File.generated(config, "reference/index.md", content=overview()))


def on_post_build(config):
    """Let the sidebar begin at a smaller width."""
    assets = Path(config.site_dir, "assets")
    for file in (*assets.glob("stylesheets/*.css"), *assets.glob("javascripts/bundle.*.js")):
        text = file.read_text(encoding="utf-8")
        for theirs, ours in WIDTHS.items():
            text = text.replace(theirs, ours)
        file.write_text(text, encoding="utf-8")


def names_of(group):
    """Module and name of each page of a group."""
    return [(module, name) for module, names in PAGES[group].items() for name in names.split()]


def path_of(module, name):
    """The page's file, by the package that people import."""
    return f"reference/{module.split('.')[0]}/{name}.md"


@cache
def packages():
    """All packages, read without importing anything."""
    loader = griffe.GriffeLoader(search_paths=[".", "integrations"])
    for package in ("mfhpo", "mfhpo_optuna", "mfhpo_ray", "mfhpo_sklearn"):
        loader.load(package)
    loader.resolve_aliases(implicit=True, external=False)
    return loader.modules_collection


def target_of(path):
    """The object that a name stands for, also where it is another name for it."""
    try:
        thing = packages()[path]
    except KeyError:
        raise PluginError(f"docs/reference/pages.py names {path}, which is not there.") from None
    thing = thing.final_target if thing.is_alias else thing
    if thing.is_attribute and isinstance(thing.value, griffe.ExprName):
        return target_of(thing.value.canonical_path)
    return thing


def check():
    """Raise an error that names what is public without a page, and the reverse."""
    there = {target_of(f"{module}.{name}") for group in PAGES for module, name in names_of(group)}
    public = {f"{package}.{name}" for package in PACKAGES for name in packages()[package].exports}
    absent = sorted(name for name in public - NO_PAGE if target_of(name) not in there)
    if absent:
        raise PluginError(f"docs/reference/pages.py lacks {', '.join(absent)}.")


def overview():
    """All names with the first sentence about each."""
    lines = ["# Reference", "", "`help()` in Python shows the same.", ""]
    for group in PAGES:
        lines += [f"## {group}", "", "| name | what it is |", "| --- | --- |"]
        for module, name in names_of(group):
            page = path_of(module, name).removeprefix("reference/")
            lines.append(f"| [{name}]({page}) | {_summary(module, name)} |")
        lines.append("")
    return "\n".join(lines)


def _summary(module, name):
    docstring = target_of(f"{module}.{name}").docstring
    text = docstring.value.partition("\n\n")[0] if docstring else ""
    return " ".join(text.split()).replace("|", "\\|")
