# The two commands a newcomer needs are `make run` and `make test`; the rest serves those who change the workbench.
#
#   make run      set up, compile, verify and profile the default workspace
#   make test     set up and run the tests (PYTEST="-k build" passes options on)
#   make lint     formatting, lint and types, as CI checks them
#   make format   mend formatting and what lint can mend by itself
#   make clean    remove what builds wrote; the environment stays

# The interpreter to set up from; an active environment's python3 comes first on PATH.
PYTHON3 ?= python3
PYTEST  ?=

# Corpora hold deliberately broken or oddly formed sources.
CXX_FILES = git ls-files '*.cpp' '*.cu' '*.cuh' '*.h' ':!tests/**/files/**' ':!tests/attacks/**' ':!tests/cases/**'

.PHONY: run test lint format clean

run:
	@python=$$($(PYTHON3) -m utils.setup) && exec "$$python" -m utils.run

test:
	@python=$$($(PYTHON3) -m utils.setup --dev) && exec "$$python" -m pytest $(PYTEST)

lint:
	@python=$$($(PYTHON3) -m utils.setup --dev) && bin=$$(dirname "$$python") && set -e; \
	"$$python" -m ruff check . && "$$python" -m ruff format --check . && \
	$(CXX_FILES) | xargs -r "$$bin/clang-format" --dry-run -Werror && \
	"$$python" -m mypy

format:
	@python=$$($(PYTHON3) -m utils.setup --dev) && bin=$$(dirname "$$python") && set -e; \
	"$$python" -m ruff check --fix . ; "$$python" -m ruff format . && \
	$(CXX_FILES) | xargs -r "$$bin/clang-format" -i

clean:
	rm -rf build examples/*/build *.so examples/*/*.so compile_commands.json examples/*/compile_commands.json
