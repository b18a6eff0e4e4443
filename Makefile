# `make help` lists the targets. Needs Python >= 3.10 and make; everything else goes into .venv.

PYTHON ?= python3
VENV ?= .venv
RESULTS := benchmarks/results
DATA := $(or $(MFHPO_DATA),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mfhpo/data)
RUN := $(VENV)/bin/python
PIP_INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check

# Many small array operations: threads inside them only get in each other's way.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

# Ray reports how it is used unless it is told not to.
export RAY_USAGE_STATS_ENABLED ?= 0

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # two installations into one environment do not mix
.PHONY: help quickstart test test-all docs data evidence readme-figures assumptions test-ray test-faults soak cluster size lint format table1 mf-mab mf-grad mf-ucb nash rcucb rcucb-forest rcucb-seconds authors overhead scale time-limit ray-tune bench-hpo bench-hpo-full bench-nas bench-recorded bench-clock small-spaces earlier search-limits certificates certify-share certainty chance quickstart-cost certificate-cost baselines fingerprints delta certify portfolios questions when-settled peers replay sklearn-search new-data wheel test-wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

quickstart: $(VENV)/.for-quickstart ## tune a small problem and print the certified answer
	$(RUN) examples/quickstart.py

test: $(VENV)/.for-test ## run the tests and doctests, but the slow and rare ones; PYTEST_ARGS is passed on
	$(RUN) -m pytest --numprocesses auto --dist worksteal -m "not cluster and not faults and not slow" $(PYTEST_ARGS)

test-all: $(VENV)/.for-test ## run all tests but test-faults: those of `make test`, the slow ones, those of test-ray
	$(RUN) -m pytest --numprocesses auto --dist worksteal -m "not cluster and not faults" $(PYTEST_ARGS)
	$(RUN) -m pytest -m cluster tests $(PYTEST_ARGS)

docs: $(VENV)/.for-docs ## build the documentation into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --clean $(ARGS)

data: $(VENV)/.for-benchmarks ## fetch published surrogates and instances into MFHPO_DATA, else ~/.cache/mfhpo/data
	$(RUN) -m benchmarks.data $(ARGS)

evidence: $(VENV)/.for-benchmarks $(VENV)/.for-ray ## run all benchmarks at a small size, and show on one page what they print; ARGS="--size full" takes days
	$(RUN) -m benchmarks.evidence.run $(ARGS)

readme-figures: $(VENV)/.for-benchmarks ## check that figures in README and docs are those of benchmarks/results; ARGS=--write renews them
	$(RUN) -m benchmarks.evidence $(ARGS)

assumptions: $(VENV)/.for-benchmarks $(VENV)/.for-ray | $(RESULTS) ## how often certificates are wrong when what they suppose does not hold
	$(RUN) -m benchmarks.assumptions --output $(RESULTS)/assumptions.json $(ARGS)

test-ray: $(VENV)/.for-test ## run the tests with real Ray clusters, whose drivers, nodes and trials are killed
	$(RUN) -m pytest -m cluster tests $(PYTEST_ARGS)

test-faults: $(VENV)/.for-test | $(RESULTS) ## eight workers on real databases that are killed, stopped and filled; needs PostgreSQL, Redis, libfaketime
	MFHPO_RELIABILITY=$(RESULTS)/reliability.json $(RUN) -m pytest tests/reliability $(PYTEST_ARGS)

soak: $(VENV)/.for-test | $(RESULTS) ## an hour of races with random faults: ARGS="--minutes 5 --seed 1"; needs the same
	$(RUN) -m tests.reliability.soak --output $(RESULTS)/soak.json $(ARGS)

cluster: $(VENV)/.for-test | $(RESULTS) ## sixteen workers that a queue kills and starts again; needs PostgreSQL
	$(RUN) -m tests.examples.cluster.job_queue --output $(RESULTS)/cluster.json $(ARGS)

size: $(VENV)/.for-test ## count lines, files and floors of imports
	@$(RUN) -m benchmarks.size $(ARGS)

lint: $(VENV)/.for-dev ## check style, format and types; changes nothing
	@failed=0; \
	for check in "ruff check ." "ruff format --check ." mypy; do \
	  echo "$$check"; $(RUN) -m $$check || failed=1; \
	done; exit $$failed

format: $(VENV)/.for-dev ## repair style and format
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

table1: $(VENV)/.for-benchmarks | $(RESULTS) ## repeat Table 1 of the IISE paper; needs make data
	$(RUN) -m benchmarks.papers.iise --data "$(DATA)/iise" --output $(RESULTS)/table1.json $(ARGS)

mf-mab: $(VENV)/.for-benchmarks | $(RESULTS) ## repeat Table 3 and Figure 1 of the LUCB paper
	$(RUN) -m benchmarks.papers.mf_mab --output $(RESULTS)/mf_mab.json --figure $(RESULTS)/mf_mab.html $(ARGS)

mf-grad: $(VENV)/.for-benchmarks | $(RESULTS) ## what certificates cost, over the lower bounds; needs make data
	$(RUN) -m benchmarks.papers.mf_grad --data "$(DATA)/iise" --output $(RESULTS)/mf_grad.json --figure $(RESULTS)/mf_grad.html $(ARGS)

mf-ucb: $(VENV)/.for-benchmarks | $(RESULTS) ## reward: MF-UCB over UCB, and elimination's growth with the budget
	$(RUN) -m benchmarks.papers.mf_ucb --output $(RESULTS)/mf_ucb.json --figure $(RESULTS)/mf_ucb.html $(ARGS)

nash: $(VENV)/.for-benchmarks | $(RESULTS) ## equilibria of games: regret by the budget, and two applications
	$(RUN) -m benchmarks.papers.nash --output $(RESULTS)/nash.json --figure $(RESULTS)/nash.html $(ARGS)

rcucb: $(VENV)/.for-benchmarks | $(RESULTS) ## time limits: the tables and figures of the RCUCB paper
	$(RUN) -m benchmarks.papers.rcucb --output $(RESULTS)/rcucb.json --figure $(RESULTS)/rcucb.html $(ARGS)

rcucb-forest: $(VENV)/.for-benchmarks | $(RESULTS) ## time limits for 672 random forests (its Section 5.2); builds a table once
	$(RUN) -m benchmarks.papers.rcucb_forest --build --output $(RESULTS)/rcucb_forest.json --figure $(RESULTS)/rcucb_forest.html $(ARGS)

authors: $(VENV)/.for-benchmarks | $(RESULTS) ## two papers' own programs beside ours, from PROGRAMS=FOLDER with clones of mf-bai and adv-mf-bai
	$(RUN) -m benchmarks.papers.authors --programs "$(or $(PROGRAMS),$(error give PROGRAMS=FOLDER, which holds clones of mf-bai and adv-mf-bai))" --output $(RESULTS)/authors.json $(ARGS)

rcucb-seconds: $(VENV)/.for-benchmarks | $(RESULTS) ## time limits for trainings with heavy-tailed seconds, beside fixed limits and none; needs make data
	$(RUN) -m benchmarks.papers.rcucb_seconds --output $(RESULTS)/rcucb_seconds.json $(ARGS)

overhead: $(VENV)/.for-benchmarks | $(RESULTS) ## measure the samplers' own time per trial, and what importing them takes
	$(RUN) -m benchmarks.import_time --output $(RESULTS)/import_time.json
	$(RUN) -m benchmarks.overhead --output $(RESULTS)/overhead.json $(ARGS)

scale: $(VENV)/.for-test | $(RESULTS) ## measure studies of 100,000 trials, and many workers, in half an hour; needs PostgreSQL
	$(RUN) -m benchmarks.scale --output $(RESULTS)/scale.json $(ARGS)

time-limit: $(VENV)/.for-benchmarks | $(RESULTS) ## measure what enforcing a time limit costs
	$(RUN) -m benchmarks.time_limit --output $(RESULTS)/time_limit.json $(ARGS)

ray-tune: $(VENV)/.for-benchmarks $(VENV)/.for-ray | $(RESULTS) ## Ray Tune: a certificate's cost beside ASHA's, and the schedulers' own time; needs make data
	$(RUN) -m benchmarks.ray_tune.replacement --data "$(DATA)/yahpo" --output $(RESULTS)/ray_replacement.json
	$(RUN) -m benchmarks.ray_tune --data "$(DATA)/yahpo" --output $(RESULTS)/ray_tune.json --figure $(RESULTS)/ray_tune.html $(ARGS)

bench-hpo: $(VENV)/.for-benchmarks ## our optimisers beside Optuna's in 10 minutes; without make data, on tasks that need none
	$(RUN) -m benchmarks.hpo run --quick $(ARGS)
	$(RUN) -m benchmarks.hpo report --quick

bench-hpo-full: $(VENV)/.for-benchmarks | $(RESULTS) ## the same with 30 seeds and the peers made by make peer-NAME, in hours; resumable; needs make data
	$(RUN) -m benchmarks.hpo run $(ARGS)
	$(RUN) -m benchmarks.hpo report

bench-nas: $(VENV)/.for-benchmarks | $(RESULTS) ## the same on a table of 2,133 small architectures, 30 seeds, in hours; resumable
	$(RUN) -m benchmarks.hpo run --nas $(ARGS)
	$(RUN) -m benchmarks.hpo report --nas

bench-recorded: $(VENV)/.for-benchmarks | $(RESULTS) ## the same on recorded trainings of scikit-learn's models, 5 seeds, in half an hour; resumable
	$(RUN) -m benchmarks.hpo run --recorded $(ARGS)
	$(RUN) -m benchmarks.hpo report --recorded

bench-clock: $(VENV)/.for-benchmarks | $(RESULTS) ## the same on a virtual clock with 1, 4, 16 and 64 workers, in many hours; resumable; needs make data
	$(RUN) -m benchmarks.hpo clock $(ARGS)

earlier: $(VENV)/.for-benchmarks | $(RESULTS) ## what earlier results and beliefs are worth, on tasks that judge; resumable; needs make data
	$(RUN) -m benchmarks.hpo.earlier --judged --output $(RESULTS)/earlier.json $(ARGS)

small-spaces: $(VENV)/.for-benchmarks .venvs/peer-optuna-gp/.made | $(RESULTS) ## one or two parameters at 20 full evaluations, beside Optuna's Gaussian process; resumable; needs 6 GB and python3.11
	$(RUN) -m benchmarks.hpo.small_spaces --output $(RESULTS)/small_spaces.json $(ARGS)

search-limits: $(VENV)/.for-benchmarks | $(RESULTS) ## what limits of time save a search where a tenth of the configurations take 20 times as long; needs make data
	$(RUN) -m benchmarks.hpo.clock.limits --data "$(DATA)/yahpo" --output $(RESULTS)/search_limits.json $(ARGS)

certificates: $(VENV)/.for-benchmarks | $(RESULTS) ## how often a search's certificates are right, and what they cost it; needs make data
	$(RUN) -m benchmarks.hpo.certificates --data "$(DATA)/yahpo" --output $(RESULTS)/certificates.json $(ARGS)

certify-share: $(VENV)/.for-benchmarks | $(RESULTS) ## what a larger share for the certificate buys and costs; needs make data
	$(RUN) -m benchmarks.hpo.certify_share --output $(RESULTS)/certify_share.json $(ARGS)

certainty: $(VENV)/.for-benchmarks | $(RESULTS) ## what being sure of the best of 200 costs, and how often it is missed on a budget; needs make data
	$(RUN) -m benchmarks.hpo.certainty_budgets --data "$(DATA)/yahpo" --output $(RESULTS)/certainty_budgets.json
	$(RUN) -m benchmarks.hpo.certainty --data "$(DATA)/yahpo" --output $(RESULTS)/certainty.json --figure $(RESULTS)/certainty.html $(ARGS)

chance: $(VENV)/.for-benchmarks | $(RESULTS) ## how often answers are as good as the search's model says; needs make data
	$(RUN) -m benchmarks.hpo.chance --data "$(DATA)/yahpo" --output $(RESULTS)/chance.json --figure $(RESULTS)/chance.html $(ARGS)

quickstart-cost: $(VENV)/.for-benchmarks | $(RESULTS) ## what the quickstart's race costs, by which policy
	$(RUN) -m benchmarks.quickstart --output $(RESULTS)/quickstart.json $(ARGS)

certificate-cost: $(VENV)/.for-benchmarks | $(RESULTS) ## what a certificate costs, by what is declared; needs make data
	$(RUN) -m benchmarks.certificate_cost --data "$(DATA)" --output $(RESULTS)/certificate_cost.json $(ARGS)

baselines: $(VENV)/.for-test | $(RESULTS) ## figures of this version that the next ones are compared with, in half an hour; needs make data
	$(RUN) -m benchmarks.baselines --data "$(DATA)" --output $(RESULTS)/baselines.json $(ARGS)

fingerprints: $(VENV)/.for-test ## show which experiments choose otherwise than recorded; ARGS=--write records them
	$(RUN) -m benchmarks.fingerprints $(ARGS)

delta: $(VENV)/.for-benchmarks | $(RESULTS) ## count wrong answers against delta
	$(RUN) -m benchmarks.delta_correctness --output $(RESULTS)/delta_correctness.json $(ARGS)

certify: $(VENV)/.for-benchmarks | $(RESULTS) ## what certify finds out about 216 finished studies, and its cost; needs make data
	$(RUN) -m benchmarks.certify --data "$(DATA)/yahpo" --output $(RESULTS)/certify.json $(ARGS)

portfolios: $(VENV)/.for-benchmarks | $(RESULTS) ## what configurations that did well elsewhere are worth on other data sets; needs make data
	$(RUN) -m benchmarks.portfolios check --seeds 20 --output $(RESULTS)/portfolios.json $(ARGS)

questions: $(VENV)/.for-benchmarks | $(RESULTS) ## find the best of twelve models on 800 questions, beside asking all or a random half
	$(RUN) -m benchmarks.questions --tests 10 --output $(RESULTS)/questions.json $(ARGS)

when-settled: $(VENV)/.for-benchmarks | $(RESULTS) ## when rules end studies, what that saves and loses; needs make data, and for all samplers and rules the extra stopping
	$(RUN) -m benchmarks.settled --tasks judged --seeds 2 --data "$(DATA)/yahpo" --output $(RESULTS)/settled.json $(ARGS)

sklearn-search: $(VENV)/.for-benchmarks | $(RESULTS) ## SpaceSearchCV beside scikit-learn's searches on five data sets
	$(RUN) -m benchmarks.sklearn_search --output $(RESULTS)/sklearn_search.json $(ARGS)

new-data: $(VENV)/.for-benchmarks | $(RESULTS) ## how often the interval for new data holds that scikit-learn's answers print
	$(RUN) -m benchmarks.new_data_interval --output $(RESULTS)/new_data_interval.json $(ARGS)

replay: $(VENV)/.for-benchmarks $(VENV)/.for-ray ## show that a refactoring changes no choice: ARGS="--output FILE" before it, "--against FILE" after; needs make data
	$(RUN) -m benchmarks.replay --data "$(DATA)" $(ARGS)

# Other optimisers, each in an environment of its own, pinned for one version of Python.
PEER_PYTHON ?= python3.11
PEERS := $(patsubst benchmarks/peers/requirements/%.txt,%,$(wildcard benchmarks/peers/requirements/*.txt))
PEERS_MADE := $(PEERS:%=.venvs/peer-%/.made)

.PHONY: $(addprefix peer-,$(PEERS))
peers: $(addprefix peer-,$(PEERS)) ## make the environments of other optimisers (28 GB), or one: make peer-smac

$(addprefix peer-,$(PEERS)): peer-%: .venvs/peer-%/.made
	.venvs/peer-$*/bin/python -m benchmarks.peers._check $(subst -,_,$*)

$(PEERS_MADE): .venvs/peer-%/.made: benchmarks/peers/requirements/%.txt
	@echo "Installing $< into $(@D) ..."
	@$(PEER_PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

wheel: $(VENV)/.for-release ## build wheel and sdist into dist, and check them; TAG=v1.2.3 must be their version
	rm -rf dist
	$(RUN) -m build --outdir dist
	$(RUN) -m twine check --strict dist/*
	$(RUN) .ci/check_wheel.py dist $(TAG)

test-wheel: ## run the tests of the sdist in dist against the wheel in dist, in an environment made for it
	bash .ci/test_wheel $(PYTHON) $(PYTEST_ARGS)

clean: ## remove the environments and what tools left behind
	rm -rf $(VENV) .venvs build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RESULTS):
	mkdir -p $@

# One environment, filled as needed: .for-EXTRA says that EXTRA is installed as pyproject.toml asks.
$(VENV)/.for-%: pyproject.toml | $(VENV)/.made
	@echo "Installing mfhpo[$*] into $(VENV) ..."
	@$(PIP_INSTALL) --editable ".[$*]"
	@touch $@

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "mfhpo needs Python 3.10 or newer; '$(PYTHON)' is not ($$($(PYTHON) --version 2>&1))." \
	    "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments. On Debian and Ubuntu: apt install" \
	    "python3-venv" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --upgrade pip
	@touch $@
