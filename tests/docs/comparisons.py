"""Comparisons in words in docs outside filled blocks, and whether each holds on today's results.

What "about", "far" and the like may mean is named here, so that one can object to it.
"""

from benchmarks.evidence.tables import result
from tests.docs.cases import every, grows, less, most, within
from tests.docs.measured import papers, races, samplers, searches

ABOUT_HALF = (0.35, 0.65)
ABOUT_HALF_OR_MORE = 0.4
ABOUT_A_THIRD = (0.2, 0.45)
ABOUT_A_TENTH = 0.13
SECONDS = (1, 60)
SMALL_PART = 0.25
FAR_FEWER = 0.5
FAR_MORE_OFTEN = 2.0
FAR_OFF = 0.5
WELL_BELOW = 0.5
HARDLY_GROWS = 2.0  # for ten times the trials; times differ by a third from day to day
IN_USE = 0.95  # of a processor that is the bound
REPRODUCED = 0.05  # off the published cost

DELTA = 0.05
EPSILON = 0.5  # points of accuracy
LCBENCH, XGBOOST = FAMILIES = ("LCBench", "rbv2_xgboost")
FITTED = "MF-UCB-PNE, fitted"
FIVE_LINKS = {"links": 5, "budget": 36_000}

COMPARISONS = {
    "docs/where-we-lose.md": {
        "ASHA costs about a tenth of a certificate": lambda: less(
            races.ray("ASHA"), races.certificate_in_ray(), ABOUT_A_TENTH
        ),
        "In about half of the races": lambda: within(ABOUT_HALF, *races.off_in_ray("ASHA")),
        "HyperBand costs about a third of what `MFTopTwo` does": lambda: every(
            less(
                races.ray("HyperBand"),
                races.ray(f"MFTopTwo, {kind} bias declared"),
                ABOUT_A_THIRD[1],
            )
            for kind in ("max", "order")
        ),
        "is off in far fewer races than ASHA": lambda: less(
            races.off_in_ray("HyperBand"), races.off_in_ray("ASHA"), FAR_FEWER
        ),
        "better in about half of the studies, or more": lambda: (
            min(races.searching_on()) > ABOUT_HALF_OR_MORE
        ),
        "a small part of what being sure costs": lambda: (
            max(map(races.halving_cost, FAMILIES)) < SMALL_PART
        ),
        "off in about a third of the races": lambda: within(ABOUT_A_THIRD, races.halving_off()),
        "NePS is ahead at 10 on rbv2_xgboost": lambda: (
            searches.ahead_with_five_seeds() == {("neps hyperband", "rbv2_xgboost", 10)}
        ),
        "and on those kept to judge it": lambda: (
            searches.ahead("hpo_judged") == {("neps hyperband", "rbv2_xgboost", 10)}
        ),
        "which has one parameter, after 10 evaluations": lambda: (
            searches.gp_is_ahead_on() == {("forrester", 10)}
        ),
        "the search takes [longer than TPE]": lambda: (
            samplers.slower_than_tpe() == [True, True, False]
        ),
        "Optuna's Gaussian process takes longer,": lambda: searches.slower("hpo") == {"optuna gp"},
        "of those with five seeds Syne Tune BOHB, NePS, OpenBox and SMAC": lambda: (
            searches.slower("hpo_five_seeds") - {"optuna gp"}
            == {"syne tune bohb", "neps hyperband", "openbox bohb", "smac multi-fidelity"}
        ),
        "a declared bias makes certificates dearer on both families": lambda: (
            min(races.ratios(*map(str.lower, FAMILIES))) > 1
        ),
        "makes them cheaper on LCBench": lambda: (
            max(races.over_the_target(LCBENCH, "declared")) < 1
        ),
        "and dearer on rbv2_xgboost": lambda: min(races.over_the_target(XGBOOST, "declared")) > 1,
        "[cheaper than the chosen policy]": papers.target_alone_is_cheaper_on_forever,
        "[wrong far more often than delta]": lambda: every(
            min(races.wrong(scenario)) > FAR_MORE_OFTEN * DELTA
            for scenario in ("shared noise", "rare divergence", "one split in ten is poor")
        ),
        "a parameter that nobody declared as the replicate": lambda: (
            min(races.wrong("forgotten replicate, noise")) > FAR_MORE_OFTEN * DELTA
        ),
        "buys two finalists five evaluations each": lambda: set(races.shortlists()) == {(2, 10)},
        "at the median of all durations [earns more]": lambda: less(
            papers.earned("RCUCB"), papers.earned("fixed: median")
        ),
        "`z-RCUCB` earns less than `RCUCB` in all three cases": lambda: less(
            papers.earned("z-RCUCB"), papers.earned("RCUCB")
        ),
        "better on the three instances NegCorr": lambda: (
            papers.lower_regret("published curves", "KL+")
            == {"NegCorr", "NegCorr, M_1", "NegCorr, grid 20"}
        ),
        "and on the random forests, but it is not": lambda: (
            papers.reward("published curves") > papers.reward("KL+")
        ),
        "printed bound is better on the forests, too": lambda: (
            papers.reward("printed") > papers.reward("KL+")
        ),
        "`kl`, is behind Thompson sampling on one instance": lambda: (
            len(papers.lower_regret("TS", "KL")) == 1
        ),
        "is better than MF-UCB on the third published instance": lambda: (
            papers.ucb_is_better_beyond(5e5)
        ),
        "in three of four cases": lambda: (
            sum(gap > REPRODUCED for gap in papers.off_published()) == 3
        ),
        "Fitted hyperparameters, as in `NashSampler`, [cost regret]": lambda: less(
            papers.regret_of_games("MF-UCB-PNE"), papers.regret_of_games(FITTED)
        ),
        "catches up at larger budgets": papers.target_alone_catches_up,
        "mostly hold less often": lambda: most(share < 0.9 for share in papers.held_in_games()),
        "no seed brings five links within 5 % of the equilibrium": lambda: (
            min(papers.errors("power allocation", **FIVE_LINKS)) > 0.05
        ),
        "the target alone is mostly cheaper than the ways to use cheap levels": lambda: (
            len(papers.cheaper_than_the_target_in_figure_1()) == 1
        ),
        "20 links are far off": lambda: min(papers.errors("power allocation", links=20)) > FAR_OFF,
        "among five players takes seconds": lambda: within(
            SECONDS, *papers.decision_of_games(players=5)
        ),
    },
    "docs/scale.md": {
        "our samplers' own time hardly grows": lambda: (
            max(samplers.growth_in_long_studies()) < HARDLY_GROWS
        ),
        "**Own time hardly grows**": lambda: max(samplers.growth_in_long_studies()) < HARDLY_GROWS,
        "about half of the whole trial's time, or more": lambda: (
            min(samplers.looks_for_enqueued("journal file")) > ABOUT_HALF_OR_MORE
        ),
        "**Memory** is mostly Optuna's list of trials": lambda: min(samplers.share_of_list()) > 0.5,
        "From 16 workers on, the processor is the bound": lambda: (
            samplers.workers_that_use(IN_USE) == {16, 32}
        ),
        "Each trial costs more the more workers there are": lambda: every(
            map(grows, samplers.processes("worker_cpu_ms").values())
        ),
        "Own time grows with it": lambda: every(map(grows, samplers.on_the_clock())),
        "The workers' time is larger in every row above": samplers.workers_take_more,
    },
    "docs/evidence/certificates.md": {
        'be wrong, as in "order"': lambda: (
            min(map(races.wrong_of_few, ("order, 4 workers", "order, 16 workers"))) > 0.5
        ),
    },
    "docs/evidence/games.md": {
        "no seed brings all five within 5 % of the equilibrium": lambda: (
            min(papers.errors("power allocation", **FIVE_LINKS)) > 0.05
        ),
        "a larger mean regret than UCB-PNE from a budget of 128 on": lambda: papers.behind_from(
            128
        ),
        "mostly miss that as well": lambda: most(
            error > 0.05 for error in papers.errors("power allocation, informed design")
        ),
    },
    "docs/evidence/overhead.md": {
        "slower than TPE up to some thousand trials": lambda: (
            samplers.slower_than_tpe() == [True, True, False]
        ),
        "After that it hardly gets slower": lambda: (
            samplers.own("SearchSampler")[-1] < HARDLY_GROWS * samplers.own("SearchSampler")[-2]
        ),
    },
    "docs/evidence/search.md": {
        "optimisers all of which take longer than ours": lambda: (
            searches.of_five_seeds() <= searches.slower("hpo_five_seeds")
        ),
        "In most runs it comes across a clearly better architecture": lambda: (
            searches.methods("hpo_nas", "NAS")[searches.OURS]["epsilon_best"] < 0.5
        ),
        "All of them promise more than they hold here": lambda: every(
            min(row["claim_gap"]) > 0
            for row in searches.methods("hpo_recorded", "scikit-learn").values()
        ),
        "by more than the regret of the median random": lambda: every(
            row["claim_gap_percent"][-1] > 100
            for row in searches.methods("hpo_recorded", "scikit-learn").values()
        ),
        "do not know of each other costs something": lambda: grows(
            searches.last_regrets_of_workers()
        ),
        "what they claim is about harder splits": lambda: max(searches.gaps_on_digits()) < -1,
        "its claim is noisier than that of a search": lambda: most(searches.noisier_claims()),
    },
    "docs/concepts/certificate.md": {
        "mostly buys two finalists a few evaluations each": lambda: most(
            finalists == 2 and taken <= 10 * finalists for finalists, taken in races.shortlists()
        ),
    },
    "docs/concepts/cheap-levels.md": {
        "mostly wider than the differences that matter": lambda: most(
            bound > EPSILON for bound in races.bounds_on_bias()
        ),
        'as on the instances "bai"': lambda: max(races.ratios("bai")) < 1,
        "a few evaluations at the start of the race alone": lambda: most(
            ratio > 1 for tasks in FAMILIES for ratio in races.over_the_target(tasks, "estimated")
        ),
    },
    "docs/how-to/architectures.md": {
        "On small architectures the search is not the best": lambda: (
            min(searches.places_among_architectures())[0] > 1
        ),
        "[it is among the better half of the optimisers]": lambda: most(
            2 * place <= number for place, number in searches.places_among_architectures()
        ),
    },
    "docs/how-to/certify.md": {
        "share their splits, which saves evaluations": lambda: less(
            races.certify("replicate shares half"), races.certify()
        ),
        "often finds something better": lambda: min(races.searching_on()) > 0.3,
    },
    "docs/how-to/declare.md": {
        "about halves the cost of the quickstart's race": lambda: within(
            ABOUT_HALF, races.quickstart("shared splits") / races.quickstart("chosen")
        ),
        "the chosen one mostly pays less": lambda: most(
            cost < papers.mf_grad("IISE")[case] for case, cost in papers.mf_grad("default").items()
        ),
    },
    "docs/how-to/limits.md": {
        "[well below a millisecond for a trial]": lambda: (
            result("time_limit")["overhead"]["process reused"]["median"] < WELL_BELOW
        ),
    },
}
"""By page, phrases and whether they hold."""
