# `make` lists the targets. Everything is installed into .venv, from the bounds of pyproject.toml and the tested
# versions of constraints.txt. The project itself is not installed: its modules are found in this folder.
PYTHON ?= python3
PY := .venv/bin/python
# One worker for each core; tests of one file stay together, because they share what they computed.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile
# The tests of compiled loops and their twins, which run with the JIT off too.
LOOPS := $(addprefix tests/test_,$(addsuffix .py,hmoh weights hmoh_codebook kernels metrics_loops baselines pairwise sketching))
# The tests of hmoh.py, kernels.py, metrics.py and ridge.py, whose coverage is measured.
CORE := $(wildcard tests/test_hmoh*.py tests/test_kernels.py tests/test_metrics*.py tests/test_ridge.py tests/test_weights.py)

# The scorecard and the report read what the others found.
NOTEBOOKS := $(sort $(wildcard notebooks/[0-9]*.ipynb)) notebooks/report.ipynb
STUDENT_ZIP := build/student.zip

.PHONY: help demo test check style fuzz mutants compare notebooks notebooks-update site student-zip classroom bench lab constraints clean
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1|\2/' | awk -F'|' '{ printf "%-24s%s\n", $$1, $$2 }'

demo: .venv/notebooks.done ## stream MNIST and search it in half a minute; writes build/demo.png, and build/draw.html to draw on
	@$(PY) -m tools.demo

build/draw.html: tools/demo.py $(wildcard tools/draw.*) hmoh.py kernels.py | .venv/notebooks.done
	@$(PY) -m tools.demo

# A line is covered if a test runs it with the JIT off or on. Tests that interrupt are run without coverage: an interrupt
# inside of coverage can leave its lock closed, and then it waits forever.
test: style ## check the style, then run all tests, those of compiled loops also with the JIT off; prints the coverage of the core
	rm -f build/coverage*
	NUMBA_DISABLE_JIT=1 $(PY) -m coverage run -m pytest $(PARALLEL) -m "not slow" -k "not interrupt" $(LOOPS)
	$(PY) -m coverage run -m pytest $(PARALLEL) -k "not sigint" $(CORE)
	$(PY) -m coverage combine --quiet && $(PY) -m coverage report
	$(PY) -m pytest $(PARALLEL) $(addprefix --ignore=,$(filter-out %_threads.py,$(CORE)))

check: style ## check the style, and run the fast tests of the core
	$(PY) -m pytest $(PARALLEL) -m "not slow" $(CORE)

style: .venv/all.done
	$(PY) -m ruff check --quiet .
	$(PY) -m ruff format --quiet --check .

fuzz: .venv/all.done ## many random streams against one that was seen at once, some minutes
	HYPOTHESIS_PROFILE=nightly $(PY) -m pytest -m machine

compare: .venv/notebooks.done ## all methods on MNIST, three seeds, beside the paper's table
	$(PY) -m study.protocol mnist --seeds 3

notebooks: .venv/all.done ## run all notebooks into build/notebooks/
	$(PY) -m tools.run_notebooks $(NOTEBOOKS)

notebooks-update: .venv/all.done ## run all notebooks and keep their outputs in notebooks/
	$(PY) -m tools.run_notebooks --update $(NOTEBOOKS)

# A broken reference is a warning of Sphinx, and -W makes it an error.
site: .venv/pages.done build/draw.html ## build/site/: the notebooks as they are, as pages to read without Jupyter, and the one to draw on; TEACHER=1: with solutions
	cat notebooks/_toc.yml $(if $(TEACHER),notebooks/_toc_teacher.yml) > build/_toc.yml
	.venv/bin/jupyter-book build notebooks --toc $(CURDIR)/build/_toc.yml --path-output build --all --quiet -W -n --keep-going > /dev/null
	rm -rf build/site && mv build/_build/html build/site && rm -rf build/_build && cp build/draw.html build/site
	@echo "The pages are in build/site/index.html"

bench: .venv/all.done ## measure speed side by side with plain numpy and scikit-learn
	$(PY) -m tools.bench

mutants: .venv/all.done .venv/mutants.done ## make the core wrong in 200 places, and show what no test notices; ARGS="NUMBER SEED"
	$(PY) -m tools.mutants $(ARGS)

student-zip: build/draw.html ## build/student.zip: the exercises and the page to draw on, to use without the clone
	$(PYTHON) notebooks/exercises/generate.py --zip $(STUDENT_ZIP)

classroom: .venv/notebooks.done .venv/classroom.done ## build/classroom/: the exercises as assignments of nbgrader, which it installs
	$(PYTHON) notebooks/exercises/generate.py --classroom build/classroom

lab: .venv/all.done ## open the notebooks in JupyterLab
	.venv/bin/jupyter lab --notebook-dir=.

constraints: ## note the newest versions that the bounds allow; run make test before committing them
	rm -rf .venv && $(PYTHON) -m venv .venv
	($(call requirements,all); $(call requirements,mutants); $(call requirements,classroom)) > .venv/all.txt
	.venv/bin/pip install --quiet --upgrade -r .venv/all.txt
	.venv/bin/pip freeze > constraints.txt

clean: ## remove everything that make made
	rm -rf .venv build .pytest_cache .hypothesis .ruff_cache
	find . -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# The requirements of one extra (or of all but `mutants` and `classroom`) with those of the core, one per line.
requirements = $(PYTHON) -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = p["optional-dependencies"]; \
	extras["all"] = sum((extras[name] for name in extras if name not in ("mutants", "classroom")), []); \
	print(*p["dependencies"], *extras[sys.argv[1]], sep="\n")' $(1)

.venv/%.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python %d.%d is too old; 3.11 or newer is needed: make PYTHON=python3.12 ..." \
		% sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv ($*) ..."
	test -x $(PY) || $(PYTHON) -m venv .venv
	$(call requirements,$*) > .venv/$*.txt
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r .venv/$*.txt
	@touch $@
