# Everything runs in .venv with the versions of .ci/constraints.txt. `make demo` and `make test` set it up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= out
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test check fix bench gpu samples nano clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the environment in .venv (does nothing when it is up to date)

$(STAMP): pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "hiresvlm needs Python 3.11 or newer; set PYTHON=... (found $$($(PYTHON) --version))"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[dev,bench]'
	@touch $@

demo: $(STAMP) ## read every document in samples/ with the CPU engine, ask one for its total
	@mkdir -p $(OUT)
	@rm -f $(OUT)/demo.jsonl $(OUT)/demo-ask.jsonl $(OUT)/demo-nano.jsonl
	$(BIN)/hiresvlm ocr samples/ --engine light -o $(OUT)/demo.jsonl
	@echo "Records: $(OUT)/demo.jsonl. The text of samples/invoice-zh.png:"
	@$(BIN)/python -c 'import json, sys; [print(r["text"]) for r in map(json.loads, open(sys.argv[1], \
		encoding="utf-8")) if r["source"].endswith("invoice-zh.png")]' $(OUT)/demo.jsonl
	$(BIN)/hiresvlm ask samples/invoice-zh.png '总金额?' --engine light -q -o $(OUT)/demo-ask.jsonl
	@$(BIN)/python -c 'import json, sys; [print(r["question"], r["answer"], "confidence", r["confidence"], \
		*r["evidence"]) for r in map(json.loads, open(sys.argv[1], encoding="utf-8"))]' $(OUT)/demo-ask.jsonl
	@echo "samples/receipt.jpg, read in 4 bits by the small vision-language model of the package (with its errors):"
	$(BIN)/hiresvlm ocr samples/receipt.jpg -m nano -q -o $(OUT)/demo-nano.jsonl
	@$(BIN)/python -c 'import json, sys; [print(r["text"]) for r in map(json.loads, open(sys.argv[1], \
		encoding="utf-8"))]' $(OUT)/demo-nano.jsonl

test: check ## run all checks and tests
	$(BIN)/python -m pytest -n $(JOBS)

check: $(STAMP) ## lint and types, changes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fix: $(STAMP) ## repair what the linter can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## accuracy of the chunking strategies on samples/, memory over 500 pages
	$(BIN)/hiresvlm bench samples samples/
	$(BIN)/hiresvlm bench memory --engine echo --pages 500

gpu: $(STAMP) ## speed of production-size models with random weights on a GPU, at most 8 minutes
	@mkdir -p $(OUT)
	timeout 480 $(BIN)/hiresvlm bench gpu --save $(OUT)/gpu.json

nano: $(STAMP) ## train the model inside the package anew (hours; needs fonts, the error names them)
	$(BIN)/python -m hiresvlm.nano.train all

samples: $(STAMP) ## make samples/ again
	$(BIN)/python samples/make_samples.py

clean: ## remove the environment and what was made
	rm -rf $(VENV) $(OUT)
