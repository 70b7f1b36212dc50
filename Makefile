# Front door. `make demo` shows what Penumbra does, `make test` says whether it works.
#
#   build    Release: the program at build/penumbra, the golden runner at build/tests/golden
#   test     everything: three builds, all tests; the last line is "N passed, N failed"
#   demo     builds a data set, trains, embeds, searches, writes a report, serves a page (tools/demo)
#   bench    builds and runs the programs of bench/ (build/bench/)
#   install  into PREFIX (default /usr/local; DESTDIR is honoured)
#   tsan     the tests under ThreadSanitizer (Clang)
#   fuzz     runs every libFuzzer target for FUZZ_SECONDS each
#   lint     clang-tidy and cppcheck        format  clang-format in place        clean
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 600
JOBS ?= $(shell nproc)
CMAKE ?= cmake
SOURCE_DIRS := $(wildcard src include cli server tests bench examples)
C_FILES = $(shell find $(SOURCE_DIRS) -name '*.[ch]' -o -name '*.inc')

.PHONY: build test demo bench install clean format lint fuzz tsan deps

build:
	$(CMAKE) -S . -B build -DCMAKE_BUILD_TYPE=Release -DPNB_TESTS=OFF -DPNB_CUDA_LATER=OFF
	$(CMAKE) --build build -j $(JOBS)

deps:
	tools/install-deps

test: deps
	JOBS=$(JOBS) tools/run-tests

demo: deps
	$(MAKE) build
	tools/demo

bench: build
	$(CMAKE) --build build -j $(JOBS) --target bench_programs
	tools/run-benches

install: build
	$(CMAKE) --install build --prefix $(PREFIX)

fuzz: deps
	JOBS=$(JOBS) FUZZ_SECONDS=$(FUZZ_SECONDS) tools/run-fuzzers

tsan: deps
	CC=clang $(CMAKE) -S . -B build-tsan -DPNB_TSAN=ON -DPNB_META_TESTS=OFF
	$(CMAKE) --build build-tsan -j $(JOBS)
	ctest --test-dir build-tsan --no-tests=error --output-on-failure

format:
	clang-format -i $(C_FILES)

lint:
	tools/run-lint

clean:
	rm -rf build build-test build-clang build-fuzz build-lint build-tsan
