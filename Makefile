# muster: plain GNU make, no lists of files.
#
#   make            build/muster
#   make run        the main job on a small example (installs what it needs)
#   make test       every test                       (installs what it needs, and says first what that will take)
#   make check      C unit tests, simulator, layers: the inner loop, under a minute
#   make e2e        every end-to-end test            (installs what it needs)
#   make format     every C file as .clang-format says
#   make soak       a million simulated worlds, and hours of chaos with real processes
#   make fuzz       the fuzz targets, FUZZ_SECONDS each     (this and make soak install clang)
#   make mutants    changes src/core in COUNT=2000 places, one at a time, and lists what no test notices: SEED=1 FILES=
#   make bench      muster and its peers side by side
#   make install    PREFIX=/usr/local, LIBDIR=PREFIX/lib, DESTDIR=; make uninstall takes it away
#   make docs       README, guides and manual as a site: build/site/html
#   make deb        Debian packages, in build/packages
#   make static     build/static/muster: one file without libraries, for containers
#   make test-packages    builds all packages and installs them into fresh systems
#   make test-frameworks  all that calls torchrun, PyTorch's own tests of it, and other versions of PyTorch: fetches 20 GB
#   make test-compat      jobs of this version and the previous one, built from the repository's history
#   make clean      removes build, or BUILD=another directory
#   make help       these lines
#   make SHARED=1         the program with shared libraries only: see PROGRAM_LIBS
#   make SAN=address,undefined test
#   make SAN=thread check

SHELL := /bin/bash
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
comma := ,
BUILD ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
VENV ?= build/venv
FUZZ_SECONDS ?= 60

# Short lines for people; `make V=1` shows the commands.
Q := $(if $(V),,@)
say = @printf '  %-7s %s\n' $(1) $@

VERSION := $(shell cat VERSION)
PACKAGES := libevent_core libevent_extra hwloc libsodium
CC := gcc
CLANG := clang
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-missing-field-initializers \
	$(if $(findstring clang,$(CC)),,-Wno-format-truncation)
CFLAGS ?= -O2 -g
override CPPFLAGS += -D_GNU_SOURCE -DMUSTER_VERSION='"$(VERSION)"' -DMUSTER_LIBEXEC='"$(PREFIX)/libexec/muster"' -Isrc -Iinclude
override CFLAGS += -std=gnu17 $(WARNINGS) -fPIC -fvisibility=hidden $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
override LDFLAGS += -Wl,--as-needed -pthread $(if $(SAN),-fsanitize=$(SAN))

have_packages := $(shell pkg-config --exists $(PACKAGES) 2>/dev/null && echo yes)
ifeq ($(have_packages),yes)
PKG_CFLAGS := $(shell pkg-config --cflags $(PACKAGES))
PKG_LIBS := $(shell pkg-config --libs $(PACKAGES))
endif

# A short job spends much of its time on the program's start: libraries that are part of the program need not be
# found, mapped and bound each time, nor copied with its forks. `make SHARED=1` has the linker take the shared ones, as
# it does where an archive is missing and with a sanitizer.
archives := libevent_extra.a libevent_core.a libsodium.a
missing_archives := $(filter $(archives),$(foreach archive,$(archives),$(shell $(CC) -print-file-name=$(archive) 2>/dev/null)))
ifeq ($(have_packages)$(SHARED)$(SAN)$(missing_archives),yes)
PROGRAM_LIBS := -Wl,-Bstatic $(archives:%=-l:%) -Wl,-Bdynamic
else
PROGRAM_LIBS := $(PKG_LIBS)
endif

sources := $(filter-out src/libexec/% src/lib/%,$(wildcard src/*/*.c src/*/*/*.c))
objects := $(patsubst src/%.c,$(BUILD)/obj/%.o,$(sources))
library_objects := $(patsubst src/%.c,$(BUILD)/obj/%.o,$(wildcard src/lib/*.c))
libexec := $(patsubst src/libexec/%.c,$(BUILD)/libexec/%,$(wildcard src/libexec/muster-*.c))
libexec_objects := $(patsubst src/%.c,$(BUILD)/obj/%.o,$(filter-out src/libexec/muster-%,$(wildcard src/libexec/*.c)))
unit_tests := $(patsubst tests/unit/%_test.c,$(BUILD)/unit/%,$(wildcard tests/unit/*_test.c))
unit_objects := $(patsubst tests/%.c,$(BUILD)/obj/%.o,$(wildcard tests/unit/*.c))
unit_library := $(patsubst tests/lib/%.c,$(BUILD)/obj/unit/lib/%.o,$(wildcard tests/lib/*.c)) $(BUILD)/obj/unit/unit.o
fuzzers := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*.c))
helpers := $(patsubst tests/helpers/%.c,$(BUILD)/helpers/%,$(wildcard tests/helpers/*.c))
benches := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/*.c))
manuals := $(wildcard man/*.[1-8])

.PHONY: all static docs deb test-packages test-compat test-frameworks run test check e2e format mutants soak fuzz bench install uninstall clean help deps-build deps-test deps-fuzz deps-bench unit wheel-files

all: $(BUILD)/muster $(libexec) $(BUILD)/libmuster.so $(BUILD)/libmuster.a

ifneq ($(have_packages),yes)
$(objects): packages-missing
.PHONY: packages-missing
packages-missing:
	@scripts/deps --print build; exit 1
endif

ifneq ($(shell pkg-config --exists check 2>/dev/null && echo yes),yes)
$(unit_objects): test-packages-missing
.PHONY: test-packages-missing
test-packages-missing:
	@scripts/deps --print test; exit 1
endif

$(BUILD)/muster: $(BUILD)/obj/cli/main.o $(BUILD)/core.a
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PROGRAM_LIBS) -lm

# Everything but main(), for the program, the tests and the benches alike.
$(BUILD)/core.a: $(filter-out %/cli/main.o,$(objects))
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

# The library takes from core.a what it needs; only what include/muster marks as MUSTER_API is seen, and
# by the versions in the map.
$(BUILD)/libmuster.so: $(library_objects) $(BUILD)/core.a src/lib/libmuster.map
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libmuster.so.0 -Wl,--version-script,src/lib/libmuster.map \
		-o $@ $(filter-out %.map,$^) $(PKG_LIBS) -lm

$(BUILD)/libmuster.a: $(library_objects) $(BUILD)/core.a
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)ld -r -o $(BUILD)/obj/libmuster.o $^
	$(Q)objcopy --localize-hidden $(BUILD)/obj/libmuster.o
	$(Q)ar rcs $@ $(BUILD)/obj/libmuster.o

$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/cli/main.o $(BUILD)/obj/lib/version.o $(BUILD)/obj/libexec/etcd_options.o: VERSION
$(BUILD)/obj/run/preload_source.o $(BUILD)/fuzzobj/run/preload_source.o: python/muster/_uncaught.py python/muster/_flight.py python/muster/_template.py
$(BUILD)/obj/watch/flight_hook.o $(BUILD)/fuzzobj/watch/flight_hook.o: python/muster/_flight.py
$(BUILD)/obj/batch/archive/archive_file.o $(BUILD)/fuzzobj/batch/archive/archive_file.o: python/muster/_bench.py
$(BUILD)/obj/web/web.o $(BUILD)/fuzzobj/web/web.o: $(wildcard src/web/*.html src/web/*.css src/web/*.js)
$(BUILD)/obj/batch/compare/compare_page.o $(BUILD)/fuzzobj/batch/compare/compare_page.o: src/batch/compare/compare_page.js

# Programs that muster starts: with libraries that it must not load itself.
.SECONDARY: $(libexec_objects) $(libexec:$(BUILD)/libexec/%=$(BUILD)/obj/libexec/%.o)
$(BUILD)/libexec/%: $(BUILD)/obj/libexec/%.o $(libexec_objects) $(BUILD)/core.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS) -lcurl -lm

# A test is compiled only when it or a header changes; it is linked again after every change of the program.
.SECONDARY: $(unit_objects) $(unit_library)
compile_test = $(Q)$(CC) $(CPPFLAGS) -Itests/unit -Itests/lib $(CFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/obj/unit/lib/%.o: tests/lib/%.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(compile_test)

$(BUILD)/obj/unit/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(compile_test)

# What only tests need.
$(BUILD)/unit.a: $(unit_library)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

# Fuzz targets, as tests of their corpora.
corpus_objects := $(patsubst tests/fuzz/%.c,$(BUILD)/obj/corpus/%.o,$(wildcard tests/fuzz/*.c))
$(BUILD)/unit/corpus: $(corpus_objects)
$(BUILD)/obj/corpus/%.o: tests/fuzz/%.c tests/lib/corpus.h
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) -Itests/lib -DTARGET=$* -include tests/lib/corpus.h $(CFLAGS) -Wno-unused-function $(PKG_CFLAGS) -MMD -MP -c -o $@ $<

# What coordinator_cost_test.c counts: these call it at the start of each basic block.
counted := $(addprefix core/rounds/,accord admission advance closing coordinator coordinator_step exchange formation inspection losses \
	pacing pairing roster) core/checks/clocks core/checks/fitness core/checks/peers core/pace/straggler core/pmi/keyvals base/heap base/map
$(BUILD)/unit/coordinator_cost: $(counted:%=$(BUILD)/obj/counted/%.o)
$(BUILD)/obj/counted/%.o: src/%.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) -fsanitize-coverage=trace-pc -MMD -MP -c -o $@ $<

$(BUILD)/unit/%: $(BUILD)/obj/unit/%_test.o $(BUILD)/unit.a $(BUILD)/core.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(PKG_LIBS) -lcheck -lsubunit -lrt -lm

$(BUILD)/helpers/stats_oracle: $(BUILD)/obj/unit/lib/stats_question.o
$(BUILD)/helpers/%: tests/helpers/%.c $(BUILD)/core.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) -Itests/lib $(CFLAGS) $(PKG_CFLAGS) $(LDFLAGS) -o $@ $< $(filter %.o,$^) $(BUILD)/core.a $(PKG_LIBS) -lm

$(BUILD)/bench/%: bench/%.c $(BUILD)/core.a $(BUILD)/libmuster.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/libmuster.a $(BUILD)/core.a $(PKG_LIBS) -lm

# Fuzzers run on objects of their own: clang's, instrumented for coverage and sanitized.
FUZZ_CFLAGS := -O1 -g -std=gnu17 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
fuzz_objects := $(patsubst src/%.c,$(BUILD)/fuzzobj/%.o,$(filter-out src/cli/main.c,$(sources)))

$(BUILD)/fuzzobj/%.o: src/%.c
	@mkdir -p $(@D)
	$(call say,CLANG)
	$(Q)$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/fuzz.a: $(fuzz_objects)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/fuzz/%: tests/fuzz/%.c $(BUILD)/fuzz.a
	@mkdir -p $(@D)
	$(call say,CLANG)
	$(Q)$(CLANG) $(CPPFLAGS) -Itests/lib $(FUZZ_CFLAGS) $(PKG_CFLAGS) -fsanitize=fuzzer -o $@ $< $(BUILD)/fuzz.a $(PKG_LIBS) -lm -pthread

# For the Python wheel (setup.py): the same, but libraries beside the program come first, for the program and
# for the libraries themselves. That is what a DT_RPATH means, and a DT_RUNPATH does not.
WHEEL_LDFLAGS := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/muster:$$ORIGIN/../../lib/muster'
wheel_files := $(BUILD)/wheel/bin/muster $(patsubst $(BUILD)/libexec/%,$(BUILD)/wheel/libexec/muster/%,$(libexec)) $(BUILD)/libmuster.so

wheel-files: $(wheel_files)

$(BUILD)/wheel/bin/muster: $(BUILD)/obj/cli/main.o $(BUILD)/core.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(WHEEL_LDFLAGS) -o $@ $^ $(PKG_LIBS) -lm

$(BUILD)/wheel/libexec/muster/%: $(BUILD)/obj/libexec/%.o $(libexec_objects) $(BUILD)/core.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(WHEEL_LDFLAGS) -o $@ $^ $(PKG_LIBS) -lcurl -lm

# Completion comes from the option tables of the program itself.
completions := $(addprefix $(BUILD)/completion/,muster _muster muster.fish)
$(BUILD)/completion/muster: shell := bash
$(BUILD)/completion/_muster: shell := zsh
$(BUILD)/completion/muster.fish: shell := fish
$(completions): $(BUILD)/muster scripts/completion
	@mkdir -p $(@D)
	$(call say,MAKE)
	$(Q)scripts/completion $(shell) $(BUILD)/muster >$@.new
	$(Q)mv $@.new $@

deps-build deps-test deps-fuzz deps-bench: deps-%:
	@scripts/deps $*

# These install first, then start make again: the package flags are read when it starts.
parallel = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
run_tests = BUILD=$(BUILD) VENV=$(VENV) SAN=$(SAN) tests/run
run: deps-build
	@$(MAKE) $(parallel) --no-print-directory all
	@scripts/demo $(BUILD)/muster $(BUILD)/demo

test:
	@$(run_tests) plan
	@scripts/deps test
	@JOBS=$(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))) $(run_tests) test

check:
	@$(MAKE) $(parallel) --no-print-directory all unit
	@$(run_tests) check

e2e: deps-test
	@$(MAKE) $(parallel) --no-print-directory e2e-files
	@scripts/venv $(VENV)
	@$(run_tests) e2e

format:
	@scripts/format

mutants: deps-test
	@$(MAKE) $(parallel) --no-print-directory all unit
	@scripts/venv $(VENV)
	@BUILD=$(BUILD) SAN=$(SAN) COUNT=$(COUNT) SEED=$(SEED) FILES='$(FILES)' JOBS=$(JOBS) $(VENV)/bin/python tests/mutants/run

bench: deps-bench
	@$(MAKE) $(parallel) --no-print-directory all $(benches) helpers
	@scripts/venv $(VENV)
	@BUILD=$(BUILD) VENV=$(VENV) bench/run

soak: deps-test deps-fuzz
	@$(MAKE) $(parallel) --no-print-directory all helpers fuzzers
	@scripts/venv $(VENV)
	@$(run_tests) soak

fuzz: deps-fuzz
	@$(MAKE) $(parallel) --no-print-directory fuzzers
	@BUILD=$(BUILD) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run fuzz

.PHONY: helpers fuzzers completions e2e-files
# A mistake is seeded into deal_sim by a test from end to end.
e2e-files: all helpers completions $(BUILD)/unit/deal_sim
completions: $(completions)
unit: $(unit_tests)
helpers: $(helpers)
fuzzers: $(fuzzers)

install: all completions
	install -D -m 755 $(BUILD)/muster $(DESTDIR)$(PREFIX)/bin/muster
	$(foreach program,$(libexec),install -D -m 755 $(program) $(DESTDIR)$(PREFIX)/libexec/muster/$(notdir $(program)) &&) true
	install -D -m 755 $(BUILD)/libmuster.so $(DESTDIR)$(LIBDIR)/libmuster.so.0
	ln -sf libmuster.so.0 $(DESTDIR)$(LIBDIR)/libmuster.so
	install -D -m 644 $(BUILD)/libmuster.a $(DESTDIR)$(LIBDIR)/libmuster.a
	install -D -m 644 include/muster/muster.h $(DESTDIR)$(PREFIX)/include/muster/muster.h
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' -e 's|@VERSION@|$(VERSION)|' src/lib/muster.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/muster.pc
	install -D -m 644 $(BUILD)/completion/muster $(DESTDIR)$(PREFIX)/share/bash-completion/completions/muster
	install -D -m 644 $(BUILD)/completion/_muster $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_muster
	install -D -m 644 $(BUILD)/completion/muster.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/muster.fish
	$(foreach page,$(manuals),install -D -m 644 $(page) $(DESTDIR)$(PREFIX)/share/man/man$(patsubst .%,%,$(suffix $(page)))/$(notdir $(page)) &&) true
	scripts/man-links $(DESTDIR)$(PREFIX)/share/man/man3 $(filter %.3,$(manuals))
	$(if $(DESTDIR),,@scripts/ldconfig $(LIBDIR))

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/muster $(DESTDIR)$(LIBDIR)/libmuster.{so.0,so,a} $(DESTDIR)$(PREFIX)/include/muster/muster.h
	rm -f $(DESTDIR)$(LIBDIR)/pkgconfig/muster.pc $(DESTDIR)$(PREFIX)/share/bash-completion/completions/muster
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_muster $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/muster.fish
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/libexec/muster/,$(notdir $(libexec)))
	rm -f $(foreach page,$(manuals),$(DESTDIR)$(PREFIX)/share/man/man$(patsubst .%,%,$(suffix $(page)))/$(notdir $(page)))
	scripts/man-links --remove $(DESTDIR)$(PREFIX)/share/man/man3 $(filter %.3,$(manuals))
	$(foreach folder,$(wildcard $(addprefix $(DESTDIR)$(PREFIX)/,libexec/muster include/muster)),rmdir --ignore-fail-on-non-empty $(folder) &&) true
	$(if $(DESTDIR),,@scripts/ldconfig)

# One file that needs no library; hwloc, which is loaded when workers are bound to CPUs, is not in it.
# The C library warns of functions that would load parts of it; the parts that are used are built in.
static: $(BUILD)/static/muster
$(BUILD)/static/muster: $(BUILD)/obj/cli/main.o $(BUILD)/core.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -static -o $@ $^ $(PKG_LIBS) -lm -Wl,--no-warnings
	$(Q)strip $@

docs:
	@scripts/site $(BUILD)/site

deb:
	@scripts/deps package
	@scripts/make-deb $(BUILD)/packages

test-packages:
	@scripts/deps package
	@$(MAKE) $(parallel) --no-print-directory all static
	@BUILD=$(BUILD) tests/packages

test-compat: all
	@BUILD=$(BUILD) tests/compat

test-frameworks: deps-test
	@$(MAKE) $(parallel) --no-print-directory e2e-files
	@scripts/venv $(VENV)
	@$(run_tests) frameworks

clean:
	rm -rf '$(BUILD)'

help:
	@sed -n 's/^#   /  /p' Makefile

-include $(objects:.o=.d) $(library_objects:.o=.d) $(wildcard $(BUILD)/obj/libexec/*.d) $(fuzz_objects:.o=.d) $(wildcard $(BUILD)/obj/unit/*.d $(BUILD)/obj/unit/lib/*.d $(BUILD)/obj/corpus/*.d $(BUILD)/obj/counted/*/*.d $(BUILD)/obj/counted/*/*/*.d)
