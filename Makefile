# SPDX-License-Identifier: Apache-2.0
# One non-recursive build. Output goes to build/$(MODE)/; `make help` lists targets.
# A folder's .c files belong to its library without being named here; files named
# *_avx2.c, *_avx512.c, ... are compiled for that instruction set and entered only
# after a check at run time.

.DEFAULT_GOAL := all
MODE ?= opt
BUILD ?= build
OUT := $(BUILD)/$(MODE)
Q := $(if $(V),,@)
PYTHON ?= python3
VENV ?= $(BUILD)/venv

# CC, AR, CFLAGS, CPPFLAGS and LDFLAGS are the builder's: ours stand before theirs. What
# a MODE needs stands whatever CFLAGS says. WERROR=1 makes warnings errors, as CI does.
ifeq ($(origin CC),default)
CC := gcc
endif
FUZZ_CC ?= clang
override CC := $(if $(filter fuzz,$(MODE)),$(FUZZ_CC),$(CC))
OPT.opt := -O2 -g
OPT.dbg := -O0 -g3
CFLAGS ?= $(or $(OPT.$(MODE)),-O1 -g)
MODE.opt := $(empty)
MODE.dbg := -DTC_VERIFY_ALWAYS=1
MODE.asan := -fsanitize=address,leak -fno-omit-frame-pointer -DTC_VERIFY_ALWAYS=1
MODE.ubsan := -fsanitize=undefined -fno-sanitize-recover=all -DTC_VERIFY_ALWAYS=1
MODE.san := -fsanitize=address,leak,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer -DTC_VERIFY_ALWAYS=1
MODE.tsan := -fsanitize=thread -Wno-tsan
MODE.fuzz := -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined \
	'-DCMPLX(x,y)=__builtin_complex((double)(x),(double)(y))'
ifeq ($(origin MODE.$(MODE)),undefined)
$(error MODE=$(MODE) is not one of opt dbg san asan ubsan tsan fuzz)
endif
WARN := -Wall -Wextra $(if $(WERROR),-Werror) -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wformat=2 -Wno-format-nonliteral -Wundef -Wpointer-arith
# Where libdrm keeps its headers; nothing before it is installed.
DRM := $(shell pkg-config --cflags libdrm 2>/dev/null)
# The same bytes whatever folder the tree is in.
ALL_CFLAGS := -std=gnu11 -fPIC -fvisibility=hidden -pthread -D_GNU_SOURCE -I. -I$(OUT)/gen \
	-ffile-prefix-map=$(CURDIR)=. $(WARN) $(MODE.$(MODE)) $(DRM) $(CPPFLAGS) $(CFLAGS)
LINK := -pthread $(filter -fsanitize%,$(MODE.$(MODE)))
ALL_LDFLAGS := $(LINK) $(LDFLAGS)

# What was built with other flags, another compiler or other sources is built anew: these
# files change when what they say does, and only then.
say = @mkdir -p $(@D); printf '%s\n' $1 | cmp -s - $@ || printf '%s\n' $1 >$@
.PHONY: always
.PRECIOUS: $(OUT)/%.list
$(OUT)/flags: always
	$(call say,'$(subst ','\'',$(ALL_CFLAGS) $(AVX512) $(ALL_LDFLAGS))' \
		'$(subst ','\'',$(shell $(CC) --version | head -n 1))')

# Instruction sets by file name.
AVX512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mavx2 -mfma -mf16c \
	-mbmi2 -mprefer-vector-width=512
isa = $(if $(findstring _avx512bf16.c,$1),$(AVX512) -mavx512bf16) \
	$(if $(findstring _avx512vnni.c,$1),$(AVX512) -mavx512vnni) \
	$(if $(findstring _amx.c,$1),$(AVX512) -mamx-tile -mamx-bf16 -mamx-int8) \
	$(if $(findstring _avx512.c,$1),$(AVX512)) \
	$(if $(findstring _avx2.c,$1),-mavx2 -mfma -mf16c -mbmi2)
# The model computes: it is optimised in every mode. Under the sanitizers -O1 is enough: -O3 takes
# twice as long to compile its kernels, and the tests do not end sooner for it. Loops of few
# instructions an element take a third longer if they begin in the middle of a line of the cache.
speed = $(if $(filter hal/sim/%,$1),$(if $(filter opt dbg,$(MODE)),-O3,-O1) -fno-math-errno \
	-fno-trapping-math -ffp-contract=off) $(if $(filter hal/sim/lookup/%,$1),-falign-loops=64)

# Vector kernels use forms that only gcc has. In MODE=fuzz they are gcc's too: with the
# sanitizers, whose interface is the same, and without coverage, which follows the readers.
# Of CMPLX clang lacks just the name.
KERNELS := hal/sim/fft/% hal/sim/lookup/% hal/sim/kernels/% hal/sim/core/product% hal/sim/core/exec_conv%
is_gcc = $(and $(filter fuzz,$(MODE)),$(filter $(KERNELS),$1))
cc = $(if $(call is_gcc,$1),gcc $(patsubst -fsanitize=fuzzer-no-link$(comma)%,-fsanitize=%,\
	$(filter-out '-DCMPLX%,$(ALL_CFLAGS))),$(CC) $(ALL_CFLAGS))
comma := ,

# ---- libraries: one for each floor ----
BASE_SRC := $(wildcard hal/base/*.c hal/hw/*.c)
# Kernels of the model that are one source for each path of the host (kernels/path.h), and
# those of one instruction set; only x86-64 has more paths than one.
X86 := $(filter x86_64%,$(shell $(CC) -dumpmachine))
PATHS := portable $(if $(X86),avx2 avx512)
EACH_PATH := $(addprefix hal/sim/kernels/,uop_chain.c uop_cvt.c uop_float.c uop_fold.c uop_int.c rng.c) \
	hal/sim/fft/fft.c hal/sim/lookup/lookup.c hal/sim/lookup/update.c
SIM_SRC := $(filter-out $(EACH_PATH) $(if $(X86),,%_avx2.c %_avx512.c %_avx512bf16.c \
	%_avx512vnni.c %_amx.c),$(wildcard hal/sim/*.c hal/sim/*/*.c))
HAL_SRC := $(wildcard hal/*.c hal/bus/*.c hal/transport/*.c)
TC_SRC := $(wildcard runtime/compiler/*.c runtime/compiler/*/*.c)
RT_SRC := $(wildcard runtime/*.c runtime/trace/*.c runtime/turns/*.c runtime/world/*.c)
PJRT_SRC := $(wildcard runtime/pjrt/*.c)
BRINGUP_SRC := $(wildcard tools/bringup/*.c tools/bringup/*/*.c)
PROTO := $(wildcard runtime/*.proto runtime/compiler/front/*.proto)

obj = $(patsubst %.c,$(OUT)/%.o,$1)
PROTO_C := $(patsubst %.proto,$(OUT)/gen/%.pb-c.c,$(PROTO))
PROTO_O := $(PROTO_C:.c=.o)
libs := base sim hal tc rt
LIB_base := $(OUT)/libbase.a
LIB_sim := $(OUT)/libsim.a
LIB_hal := $(OUT)/libhal.a
LIB_tc := $(OUT)/libtc.a
LIB_rt := $(OUT)/librt_tessera.a
LIB_bringup := $(OUT)/libbringup.a
# What each holds, by the name of its file.
OBJECTS_libbase := $(call obj,$(BASE_SRC))
OBJECTS_libsim := $(call obj,$(SIM_SRC)) $(foreach p,$(PATHS),$(EACH_PATH:%.c=$(OUT)/%_$p.o))
OBJECTS_libhal := $(call obj,$(HAL_SRC))
OBJECTS_libbringup := $(call obj,$(BRINGUP_SRC))
OBJECTS_libtc := $(call obj,$(TC_SRC)) $(filter $(OUT)/gen/runtime/compiler/%,$(PROTO_O))
OBJECTS_librt_tessera := $(call obj,$(RT_SRC)) \
	$(filter-out $(OUT)/gen/runtime/compiler/%,$(PROTO_O))
$(LIB_base): $(OBJECTS_libbase)
$(LIB_sim): $(OBJECTS_libsim)
$(LIB_hal): $(OBJECTS_libhal)
$(LIB_tc): $(OBJECTS_libtc)
$(LIB_rt): $(OBJECTS_librt_tessera)
$(LIB_bringup): $(OBJECTS_libbringup)
ALL_LIBS := $(LIB_rt) $(LIB_tc) $(LIB_hal) $(LIB_sim) $(LIB_base)
EXT := -lsleef -lelf -lprotobuf-c -ljson-c -lnuma -lpci -ldrm -lm -ldl \
	-Wl,--as-needed -lcrypto

PLUGIN := $(OUT)/pjrt_plugin_tessera.so
TOOLS := $(patsubst tools/%/main.c,$(OUT)/%,$(wildcard tools/*/main.c))

.PHONY: all
all: $(PLUGIN) $(TOOLS)

$(OUT)/%.o: %.c $(OUT)/flags
	@mkdir -p $(@D)
	$(Q)$(call cc,$<) $(call speed,$<) $(call isa,$<) -MMD -MP -c $< -o $@

define compile_path
$(EACH_PATH:%.c=$(OUT)/%_$1.o): $(OUT)/%_$1.o: %.c $(OUT)/flags
	@mkdir -p $$(@D)
	$(Q)$$(call cc,$$<) $$(call speed,$$<) $$(call isa,_$1.c) -DSIM_PATH=$1 -MMD -MP -c $$< -o $$@
endef
$(foreach p,$(PATHS),$(eval $(call compile_path,$p)))

$(OUT)/%.a: $(OUT)/%.list
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcsD $@ $(filter %.o,$^)
$(OUT)/%.list: always
	$(call say,$(OBJECTS_$*))

$(OUT)/gen/%.pb-c.c $(OUT)/gen/%.pb-c.h: %.proto
	@mkdir -p $(OUT)/gen
	$(Q)protoc-c --c_out=$(OUT)/gen $<
$(OUT)/gen/%.pb-c.o: $(OUT)/gen/%.pb-c.c
	$(Q)$(CC) $(filter-out -Werror,$(ALL_CFLAGS)) -c $< -o $@
$(call obj,$(TC_SRC) $(RT_SRC) $(PJRT_SRC) $(wildcard tests/fuzz/*.c tests/fuzz_ops/*.c)): | $(PROTO_C)

$(PLUGIN): $(call obj,$(PJRT_SRC)) $(ALL_LIBS) runtime/pjrt/pjrt.map
	$(Q)$(CC) -shared -Wl,--build-id -Wl,--version-script=runtime/pjrt/pjrt.map -Wl,-z,defs \
		$(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(ALL_LIBS) $(EXT)

# A tool is a folder of tools/ with a main.c.
.SECONDEXPANSION:
$(TOOLS): $(OUT)/%: $$(call obj,$$(wildcard tools/$$*/*.c)) $$(LIBS_$$*) $(LIB_tc) $(LIB_hal) $(LIB_sim) $(LIB_base)
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--as-needed -o $@ $^ $(EXT)

$(OUT)/xla-smi: EXT += -lncursesw -ltinfo
# Command lines that a table describes, of the tools that have one.
TABLED := $(call obj,$(wildcard tools/common/*.c))
LIBS_xla-smi := $(TABLED)
# The steps of bring-up; xla-smi runs the program and links none of them.
LIBS_tessera-bringup := $(TABLED) $(LIB_bringup)

# ---- tests: a program a file; its first word says which floors it may use ----
UNIT_SRC := $(wildcard tests/unit/*/*_test.c)
UNIT := $(addprefix $(OUT)/tests/,$(basename $(notdir $(UNIT_SRC))))
$(call obj,$(UNIT_SRC)): | $(PROTO_C)
# tests/unit/FLOOR/FLOOR_SUBJECT_test.c links these libraries:
FLOOR_base := $(LIB_base)
FLOOR_hw := $(FLOOR_base)
FLOOR_sim := $(LIB_sim) $(FLOOR_base)
FLOOR_hal := $(LIB_hal) $(FLOOR_sim)
FLOOR_chips := $(FLOOR_hal)
FLOOR_turns := $(FLOOR_sim)
FLOOR_tc := $(LIB_tc) $(FLOOR_hal)
FLOOR_opt := $(FLOOR_tc)
FLOOR_bringup := $(LIB_bringup) $(FLOOR_tc)
FLOOR_rt := $(ALL_LIBS)
FLOOR_gangs := $(ALL_LIBS)
FLOOR_numerics := $(ALL_LIBS)
FLOOR_pjrt := $(ALL_LIBS)
define link_unit
$(filter $(OUT)/tests/$1_%,$(UNIT)): $(OUT)/tests/%: $(OUT)/tests/unit/$1/%.o $(FLOOR_$1)
	@mkdir -p $$(@D)
	$(Q)$(CC) $$(ALL_LDFLAGS) -o $$@ $$(filter %.o,$$^) $(FLOOR_$1) -lcmocka $(EXT)
endef
$(foreach f,base hw sim turns hal chips tc opt bringup rt gangs numerics pjrt,$(eval $(call link_unit,$f)))
# They change programs on their way to the device.
$(OUT)/tests/bringup_isa_test $(OUT)/tests/bringup_link_test: private ALL_LDFLAGS += \
	-Wl,--wrap=hal_exe_load
# It has sensors of its own.
$(OUT)/tests/bringup_sensors_test: private ALL_LDFLAGS += -Wl,--wrap=hal_device_telemetry \
	-Wl,--wrap=hal_device_inject -Wl,--wrap=hal_queue_execute

# Devices of it fail between two steps of a launch.
$(OUT)/tests/gangs_faults_test: private ALL_LDFLAGS += -Wl,--wrap=hal_queue_execute \
	-Wl,--wrap=hal_peer_va

# Random programs three ways: the device, the evaluator, JAX's CPU backend. What it found
# runs with the unit tests.
FUZZ_OPS := $(OUT)/fuzz_ops/fuzz_ops
FUZZ_OPS_OBJ := $(call obj,$(wildcard tests/fuzz_ops/*.c))
$(FUZZ_OPS): $(FUZZ_OPS_OBJ) $(ALL_LIBS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(FUZZ_OPS_OBJ) $(ALL_LIBS) $(EXT)
FUZZ_OPS_PARTS := $(filter-out %/main.o,$(FUZZ_OPS_OBJ))
$(OUT)/tests/rt_fuzz_ops_test: $(FUZZ_OPS_PARTS)

# The harness of the C suites: prints each program's name and cmocka's own lines.
.PHONY: unit unit-programs
PICKED := $(if $(T),$(filter $(addprefix $(OUT)/tests/,$(subst *,%,$(T))),$(UNIT)),$(UNIT))
unit-programs: $(PICKED) $(PLUGIN) $(TOOLS)
unit: unit-programs
	$(Q)TESSERA_BUILD=$(OUT) sh tests/run.sh $(PICKED)

# make numerics: measures the errors of elementary functions anew, which takes an hour.
.PHONY: numerics
numerics: $(OUT)/tests/numerics_real_test $(OUT)/tests/numerics_complex_test
	$(Q)$< --measure 100000000 >tests/data/numerics.new
	$(Q)$(OUT)/tests/numerics_complex_test --measure 4000000 >>tests/data/numerics.new
	$(Q)mv tests/data/numerics.new tests/data/numerics.txt

# make mutants [M=PATTERN] [LEAST=95]: one small bug after the other; do the suites notice?
LEAST ?= 95
.PHONY: mutants
mutants: packages $(VENV)/.plugin
	$(Q)$(PYTHON) tests/mutants/run.py --folder $(BUILD)/mutants --least $(LEAST) \
		--python $(abspath $(VENV))/bin/python $(if $(M),--only '$(M)')

BENCH := $(patsubst tests/bench/%.c,$(OUT)/bench/%,$(wildcard tests/bench/*_bench.c))
$(BENCH): $(OUT)/bench/%: $(OUT)/tests/bench/%.o $(ALL_LIBS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(ALL_LIBS) $(EXT)
$(OUT)/bench/transport_bench: $(call obj,$(wildcard tests/bench/transport_*.c) tests/kmod/kmod.c)

# One suite for every way to a device.
CONFORMANCE := $(OUT)/conformance/conformance
$(CONFORMANCE): $(call obj,$(wildcard tests/conformance/*.c)) $(LIB_tc) $(LIB_hal) $(LIB_sim) $(LIB_base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(EXT)
$(call obj,$(wildcard tests/conformance/*.c)): tests/conformance/checks.def

# W='--only reset' picks checks; KILLS='--clients 10 --servers 5' makes check-kill short.
.PHONY: conformance check-kill
conformance: $(CONFORMANCE) $(OUT)/tessera-sim
	$(Q)$(PYTHON) tests/conformance/run.py $(CONFORMANCE) --server $(OUT)/tessera-sim $(W)
check-kill: $(CONFORMANCE) $(OUT)/tessera-sim $(OUT)/xla-smi
	$(Q)$(PYTHON) tests/conformance/kill_test.py $(CONFORMANCE) --server $(OUT)/tessera-sim \
		--smi $(OUT)/xla-smi $(KILLS)

FUZZ := $(patsubst tests/fuzz/%.c,$(OUT)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
$(OUT)/fuzz/vfio_user_fuzz: $(call obj,$(filter-out %/main.c,$(wildcard tools/tessera-sim/*.c)))
$(OUT)/fuzz/dump_fuzz $(OUT)/fuzz/image_fuzz: $(call obj,$(filter-out %/main.c,$(wildcard tools/tessera-objdump/*.c)))
$(FUZZ): $(OUT)/fuzz/%: $(OUT)/tests/fuzz/%.o $(ALL_LIBS)
	@mkdir -p $(@D)
	$(Q)$(CC) -fsanitize=fuzzer,address,undefined -pthread -o $@ $(filter %.o,$^) \
		$(ALL_LIBS) $(EXT)

# ---- guests: programs that run in a virtual machine, beside the model outside it ----
GUEST := $(patsubst tests/guest/%.c,$(OUT)/guest/%,$(wildcard tests/guest/*.c))
$(GUEST): $(OUT)/guest/%: $(OUT)/tests/guest/%.o $(LIB_hal) $(LIB_sim) $(LIB_base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--as-needed -o $@ $^ -lcmocka $(EXT)

# make check-vm [T=T1]: fetches what it needs, but once, into build/vm or TESSERA_VM_CACHE.
.PHONY: check-vm check-vm-run
check-vm:
	$(Q)tools/packages.sh vm
	$(Q)$(MAKE) --no-print-directory check-vm-run
check-vm-run: $(GUEST) $(CONFORMANCE) $(addprefix $(OUT)/,tessera-sim xla-smi tests/hal_trace_test)
	$(Q)TESSERA_VM_CACHE=$(or $(TESSERA_VM_CACHE),$(BUILD)/vm) $(PYTHON) tests/guest/run.py \
		--build $(OUT) $(T) || { s=$$?; [ $$s -eq 77 ] || exit $$s; \
		echo "check-vm: skipped, for the reasons above"; }

# make check-conformance: the suite on all five ways to a device, three of them in guests,
# as one table.
.PHONY: check-conformance
check-conformance:
	$(Q)$(MAKE) --no-print-directory check-vm T=T6

# make check-vm-jax: JAX trains in a guest, on the host's Python; then two processes on one card.
.PHONY: check-vm-jax
check-vm-jax: $(VENV)/.plugin
	$(Q)TESSERA_VM_PYTHON=$(abspath $(VENV))/bin/python $(MAKE) --no-print-directory \
		check-vm T="JAX JAX-TWO"

# ---- install: everything goes below $(DESTDIR), and uninstall removes it ----
PREFIX ?= /usr/local
# Debian keeps libraries in a folder for each architecture.
LIBDIR ?= $(PREFIX)/lib$(if $(wildcard /etc/debian_version),$(addprefix /,$(shell \
	$(CC) -print-multiarch 2>/dev/null)))
VERSION := $(shell sed -n 's/^.define TC_VERSION "\(.*\)"/\1/p' runtime/compiler/tc.h)
LIBTESSERA := $(OUT)/libtessera.so.$(VERSION)
# The doors and what they include, under tessera/ instead of hal/.
PUBLIC = $(patsubst hal/%,%,$(sort $(filter hal/%,$(shell $(CC) -MM -I. hal/hal.h hal/telemetry.h))))
# mode:file:where
INSTALLED = $(foreach t,$(TOOLS),755:$t:$(PREFIX)/bin/$(notdir $t)) \
	644:$(LIBTESSERA):$(LIBDIR)/$(notdir $(LIBTESSERA)) \
	644:$(PLUGIN):$(LIBDIR)/tessera/$(notdir $(PLUGIN)) \
	644:$(STAGE)/tessera.pc:$(LIBDIR)/pkgconfig/tessera.pc \
	$(foreach h,$(PUBLIC),644:$(STAGE)/include/$h:$(PREFIX)/include/tessera/$h) \
	$(foreach m,$(wildcard tools/*/*.1),644:$m:$(PREFIX)/share/man/man1/$(notdir $m)) \
	$(foreach m,$(wildcard tools/*/*.8 tools/*.8),644:$m:$(PREFIX)/share/man/man8/$(notdir $m)) \
	755:tools/tessera-vfio-bind:$(PREFIX)/sbin/tessera-vfio-bind \
	644:udev/70-tessera.rules:$(PREFIX)/lib/udev/rules.d/70-tessera.rules \
	644:udev/tessera-modules.conf:$(PREFIX)/lib/modules-load.d/tessera.conf \
	644:tools/tessera-bringup/tessera-bringup.desktop:$(PREFIX)/share/applications/tessera-bringup.desktop \
	644:$(STAGE)/tessera-sim.service:$(PREFIX)/lib/systemd/system/tessera-sim.service \
	644:kernel-uapi/include/tessera_drm.h:$(PREFIX)/include/drm/tessera_drm.h \
	644:kernel-uapi/include/tessera_device.h:$(PREFIX)/include/drm/tessera_device.h \
	$(foreach c,$(wildcard tools/completion/*),644:$c:$(PREFIX)/share/bash-completion/completions/$(notdir $c))
# The kernel driver's sources, for `dkms add`; the number is DKMS's.
DRIVER := $(PREFIX)/src/tessera-$(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' kernel-uapi/driver/dkms.conf)
INSTALLED_LINKS = $(LIBDIR)/libtessera.so.0 $(LIBDIR)/libtessera.so

$(LIBTESSERA): $(LIB_hal) $(LIB_sim) $(LIB_base) hal/libtessera.map
	$(Q)$(CC) -shared -Wl,-soname,libtessera.so.0 -Wl,--version-script=hal/libtessera.map \
		-Wl,-z,defs -Wl,-Bsymbolic-functions -Wl,--as-needed $(ALL_LDFLAGS) -o $@ \
		-Wl,--whole-archive $(LIB_hal) -Wl,--no-whole-archive $(LIB_sim) $(LIB_base) $(EXT)

.PHONY: install uninstall check-install
all: $(LIBTESSERA)
# Whoever installs writes nothing into the tree: what names the prefix is made elsewhere.
install: $(PLUGIN) $(TOOLS) $(LIBTESSERA)
	$(Q)stage=$$(mktemp -d) && trap 'rm -rf "$$stage"' EXIT && \
		$(MAKE) -s install-from STAGE="$$stage"
.PHONY: install-from
install-from:
	$(Q)for h in $(PUBLIC); do mkdir -p $(STAGE)/include/$$(dirname $$h); \
		sed 's|#include "hal/\(.*\)"|#include <tessera/\1>|' hal/$$h >$(STAGE)/include/$$h; done
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
		-e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' \
		hal/tessera.pc.in >$(STAGE)/tessera.pc
	$(Q)sed 's|^ExecStart=/usr/bin|ExecStart=$(PREFIX)/bin|' tools/tessera-sim/tessera-sim.service \
		>$(STAGE)/tessera-sim.service
	$(Q)set -e; for f in $(INSTALLED); do from=$${f#*:}; \
		install -D -m $${f%%:*} $${from%:*} "$(DESTDIR)$${f##*:}"; done
	$(Q)$(MAKE) -s -C kernel-uapi dkms-tree DKMS="$(abspath $(DESTDIR)$(DRIVER))"
	$(Q)for l in $(INSTALLED_LINKS); do ln -sf $(notdir $(LIBTESSERA)) "$(DESTDIR)$$l"; done

uninstall:
	$(Q)for f in $(INSTALLED) $(INSTALLED_LINKS); do rm -f "$(DESTDIR)$${f##*:}"; done
	$(Q)rm -rf "$(DESTDIR)$(DRIVER)"
	$(Q)for d in $(PREFIX)/include/tessera/base $(PREFIX)/include/tessera/hw \
		$(PREFIX)/include/tessera $(LIBDIR)/tessera; do \
		rmdir "$(DESTDIR)$$d" 2>/dev/null || true; done

# make dist: the sources as one archive, the same bytes for the same commit.
.PHONY: dist
dist:
	@mkdir -p $(BUILD)
	$(Q)git archive --format=tar --prefix=tessera-$(VERSION)/ HEAD | xz -9 -T1 \
		>$(BUILD)/tessera-$(VERSION).tar.xz
	@ls $(BUILD)/tessera-$(VERSION).tar.xz

check-install: $(PLUGIN) $(TOOLS) $(LIBTESSERA)
	$(Q)MAKE="$(MAKE)" CC="$(CC)" LINK="$(ALL_LDFLAGS)" BUILD=$(BUILD) MODE=$(MODE) sh tests/install.sh

# What a packager counts on: see the file. It builds most of the tree a second time.
.PHONY: check-build
check-build: all
	$(Q)MAKE="$(MAKE)" BUILT="$(abspath $(OUT))" MODE=$(MODE) sh tests/build.sh

# ---- Python: an environment of the tree's own, with the plugin in it ----
JAX := jax==0.10.2
# What a wheel is made of, beside the plugin.
WHEEL := $(wildcard runtime/python/*.* runtime/python/tessera_pjrt/*.py \
	runtime/python/jax_plugins/*/*.py)
$(VENV)/.made: tests/jax/requirements.txt
	$(Q)$(PYTHON) -m venv $(VENV)
	$(Q)$(VENV)/bin/pip -q install $(JAX) -r $<
	$(Q)touch $@
# The installed package reads the plugin of this build, so that no wheel is needed
# to try a change: the wheel itself is what `make wheel` builds.
$(VENV)/.plugin: $(VENV)/.made $(PLUGIN) $(WHEEL)
	$(Q)TESSERA_PREBUILT=$(abspath $(PLUGIN)) $(VENV)/bin/pip -q install --force-reinstall \
		--no-deps ./runtime/python
	$(Q)touch $@

# PyTorch has an environment of its own: it is large, and `make check` does without.
TORCH_VENV ?= $(BUILD)/venv-torch
$(TORCH_VENV)/.made: tests/torch/requirements.txt
	$(Q)$(PYTHON) -m venv $(TORCH_VENV)
	$(Q)$(TORCH_VENV)/bin/pip -q install $(JAX) numpy scikit-learn pytest absl-py pyyaml requests \
		typing_extensions filelock sympy networkx jinja2 fsspec
	$(Q)$(TORCH_VENV)/bin/pip -q install --no-deps -r $<
	$(Q)touch $@
$(TORCH_VENV)/.plugin: $(TORCH_VENV)/.made $(PLUGIN) $(WHEEL)
	$(Q)TESSERA_PREBUILT=$(abspath $(PLUGIN)) $(TORCH_VENV)/bin/pip -q install --force-reinstall \
		--no-deps ./runtime/python
	$(Q)touch $@

.PHONY: wheel
wheel: $(VENV)/.made $(PLUGIN)
	$(Q)TESSERA_PREBUILT=$(abspath $(PLUGIN)) $(VENV)/bin/pip -q wheel --no-deps \
		-w $(OUT)/wheel ./runtime/python
	@ls $(OUT)/wheel/*.whl

# ---- what people call ----
# On a fresh Debian machine packages come first, and the sources they let us build
# are looked up by a second make.
.PHONY: packages run check check-jax bench lint fuzz docs help
packages:
	$(Q)tools/packages.sh build

run: packages
	$(Q)$(MAKE) --no-print-directory $(VENV)/.plugin $(TOOLS)
	$(Q)$(VENV)/bin/python runtime/python/examples/digits.py --smi $(OUT)/xla-smi

# make run-spmd [STEPS=30]: one program on eight chips.
.PHONY: run-spmd
run-spmd: packages
	$(Q)$(MAKE) --no-print-directory $(VENV)/.plugin $(TOOLS)
	$(Q)$(VENV)/bin/python runtime/python/examples/spmd_transformer.py --smi $(OUT)/xla-smi \
		$(if $(STEPS),--steps $(STEPS))

# make run-torch, make check-torch: through PyTorch. EXITS=50 ends programs so often.
.PHONY: run-torch check-torch
run-torch: packages
	$(Q)$(MAKE) --no-print-directory $(TORCH_VENV)/.plugin
	$(Q)$(TORCH_VENV)/bin/python runtime/python/examples/torch_digits.py
check-torch: $(TORCH_VENV)/.plugin $(OUT)/tessera-sim
	$(Q)$(TORCH_VENV)/bin/python -m pytest -q --tb=short --exits $(or $(EXITS),10) $(PYTEST) \
		tests/torch

check: packages
	$(Q)$(MAKE) --no-print-directory unit
	$(Q)sh tests/udev.sh
	$(Q)$(MAKE) --no-print-directory conformance W='--quick --brief'
	$(Q)$(PYTHON) tests/conformance/columns_test.py $(CONFORMANCE)
	$(Q)$(MAKE) --no-print-directory -Otarget check-smi check-smi-trace check-install
	$(Q)$(PYTHON) tests/bringup_test.py $(OUT)/tessera-bringup $(OUT)/tessera-sim
	$(Q)$(PYTHON) tests/package_test.py
	$(Q)$(MAKE) --no-print-directory check-kill KILLS='--clients 10 --servers 5'
	$(Q)$(MAKE) --no-print-directory check-jax

# xla-smi as its users see it: with -j two at a time beside check-install, for they wait more than
# they work. tessera-bringup measures what load does, and wants to be alone.
.PHONY: check-smi check-smi-trace
check-smi: $(OUT)/xla-smi $(OUT)/tessera-sim $(LIBTESSERA)
	$(Q)$(PYTHON) tests/smi_test.py $(OUT)/xla-smi
	$(Q)$(PYTHON) tests/smi_doctor_test.py $(OUT)/xla-smi
	$(Q)$(PYTHON) tests/smi_link_test.py $(OUT)/xla-smi $(LIBTESSERA) $(OUT)/tessera-sim
	$(Q)$(PYTHON) tests/smi_served_test.py $(OUT)/xla-smi $(LIBTESSERA) $(OUT)/tessera-sim
check-smi-trace: $(OUT)/xla-smi $(CONFORMANCE)
	$(Q)$(PYTHON) tests/smi_trace_test.py $^

# A test that hangs, as XLA's CPU backend has under load, is a failure: after JAX_SECONDS the
# stacks of all threads are printed and the run ends.
JAX_SECONDS ?= 1200
# CASES=N: of each test's cases the first, and each Nth after it.
# Processes that share the tests; each wants a core and 4 GB.
JAX_JOBS ?= 2
check-jax: $(VENV)/.plugin $(TOOLS) $(FUZZ_OPS)
	$(Q)$(VENV)/bin/python -m pytest -q -rs --tb=short -o faulthandler_timeout=$(JAX_SECONDS) \
		-o faulthandler_exit_on_timeout=true -n $(JAX_JOBS) --dist worksteal \
		$(if $(CASES),--one-of $(CASES)) $(PYTEST) \
		tests/jax | \
		$(PYTHON) tests/fold_skips.py

# The suites that run programs, on a model that checks them (DEVICE.md). Of the JAX tests each with
# a quarter of its cases: what a program reads and writes seldom depends on which. MODEL_CASES=1: all.
MODEL_CASES ?= 4
.PHONY: check-model
check-model: $(filter $(addprefix $(OUT)/tests/,rt_% numerics_% pjrt_%),$(UNIT)) \
		$(OUT)/tests/hal_device_test $(OUT)/tests/tc_link_test
	$(Q)TESSERA_BUILD=$(OUT) TESSERA_DEVICES=sim:hbm=64M,lanes=2,check sh tests/run.sh \
		$(OUT)/tests/hal_device_test
	$(Q)TESSERA_BUILD=$(OUT) TESSERA_DEVICES=sim:devices=8,hbm=256M,lanes=1,check \
		sh tests/run.sh $(OUT)/tests/tc_link_test
	$(Q)TESSERA_BUILD=$(OUT) TESSERA_SIM=check sh tests/run.sh $(filter-out \
		$(OUT)/tests/hal_device_test $(OUT)/tests/tc_link_test,$^)
	$(Q)TESSERA_SIM=check $(MAKE) --no-print-directory check-jax CASES=$(MODEL_CASES)

# make check-jax-own JAX_TESTS=FOLDER: tests of the JAX project, which are not part of this
# tree, on the device. OWN='--only nn_test' picks files; `run.py --help` lists more.
OWN_VENV ?= $(BUILD)/venv-own
$(OWN_VENV)/.made:
	$(Q)$(PYTHON) -m venv $(OWN_VENV)
	$(Q)$(OWN_VENV)/bin/pip -q install $(JAX) numpy absl-py pytest pytest-timeout hypothesis \
		scipy flatbuffers cloudpickle portpicker
	$(Q)touch $@
$(OWN_VENV)/.plugin: $(OWN_VENV)/.made $(PLUGIN) $(WHEEL)
	$(Q)TESSERA_PREBUILT=$(abspath $(PLUGIN)) $(OWN_VENV)/bin/pip -q install --force-reinstall \
		--no-deps ./runtime/python
	$(Q)touch $@

.PHONY: check-jax-own check-jax-own-devices
check-jax-own: $(OWN_VENV)/.plugin
	$(Q)$(PYTHON) tests/jax/own/run.py '$(JAX_TESTS)' --python $(OWN_VENV)/bin/python $(OWN)

# make check-jax-own-devices JAX_TESTS=FOLDER: those of them that want several devices, on 8.
check-jax-own-devices: $(OWN_VENV)/.plugin
	$(Q)$(PYTHON) tests/jax/own/run.py '$(JAX_TESTS)' --python $(OWN_VENV)/bin/python \
		--devices 8 $(OWN)

# make fuzz-meshes [SEED=n] [ROUNDS=10]: the programs of the JAX corpus on random meshes, each
# once a round.
.PHONY: fuzz-meshes
fuzz-meshes: $(VENV)/.plugin
	$(Q)TESSERA_SIM=devices=8,hbm=512M $(VENV)/bin/python tests/jax/devices/random_meshes.py \
		--seed $(or $(SEED),1) --rounds $(or $(ROUNDS),10)

# make check-ecosystem [PYTEST='-k diffrax']: programs of projects that build on JAX, on the device
# beside JAX's CPU backend, and a table of times. An environment of its own, of 0.8 GB.
ECOSYSTEM_VENV ?= $(BUILD)/venv-ecosystem
$(ECOSYSTEM_VENV)/.made: tests/ecosystem/requirements.txt
	$(Q)$(PYTHON) -m venv $(ECOSYSTEM_VENV)
	$(Q)$(ECOSYSTEM_VENV)/bin/pip -q install $(JAX) numpy pytest -r $<
	$(Q)touch $@
$(ECOSYSTEM_VENV)/.plugin: $(ECOSYSTEM_VENV)/.made $(PLUGIN) $(WHEEL)
	$(Q)TESSERA_PREBUILT=$(abspath $(PLUGIN)) $(ECOSYSTEM_VENV)/bin/pip -q install \
		--force-reinstall --no-deps ./runtime/python
	$(Q)touch $@

# make bench-ecosystem: the same, and the table goes to RESULTS.md.
.PHONY: check-ecosystem bench-ecosystem
check-ecosystem bench-ecosystem: $(ECOSYSTEM_VENV)/.plugin
	$(Q)$(ECOSYSTEM_VENV)/bin/python -m pytest -q --tb=short $(PYTEST) \
		$(if $(filter bench-%,$@),--write $(RESULTS)) tests/ecosystem

RESULTS := tests/bench/RESULTS.md
bench: $(VENV)/.plugin $(BENCH) bench-host
	$(Q)$(VENV)/bin/python tests/bench/bench.py --write $(RESULTS) \
		--floors $(OUT)/bench/floors_bench --peaks $(OUT)/bench/peak_bench \
		--hop $(OUT)/bench/hop_bench

# make bench-torch: the device, through JAX, beside PyTorch on the CPU itself.
.PHONY: bench-torch bench-growth
bench-torch: $(TORCH_VENV)/.plugin
	$(Q)$(TORCH_VENV)/bin/python tests/bench/torch_peer.py --write $(RESULTS)

# make bench-growth: how times grow with sizes and fall with lanes.
bench-growth: $(VENV)/.plugin
	$(Q)$(VENV)/bin/python tests/bench/growth.py --write $(RESULTS)

# make bench-spmd: collectives of 2, 4 and 8 devices, and a step of training on 1 to 8.
bench-spmd: $(VENV)/.plugin
	$(Q)$(VENV)/bin/python tests/bench/spmd.py --write $(RESULTS)

# make bench-watched: xla-smi's start, a snapshot, what being watched costs.
.PHONY: bench-watched
bench-watched: $(OUT)/bench/watched_bench $(OUT)/xla-smi
	$(Q)$(PYTHON) tests/bench/watched.py --build $(OUT) --write $(RESULTS)

# make bench-recovery: from each error that can be injected to a device that works again.
.PHONY: bench-recovery
bench-recovery: $(CONFORMANCE) $(OUT)/tessera-sim
	$(Q)$(PYTHON) tests/bench/recovery.py --build $(OUT) --write $(RESULTS)

# make bench-transports: every way to a device, on the host and in guests.
TRANSPORTS := $(PYTHON) tests/bench/transports.py --build $(OUT) --write $(RESULTS)
.PHONY: bench-host bench-transports bench-spmd
bench-host: $(OUT)/bench/transport_bench $(OUT)/tessera-sim
	$(Q)$(TRANSPORTS)
bench-transports: bench-host
	$(Q)$(MAKE) --no-print-directory check-vm T=BENCH
	$(Q)$(TRANSPORTS) --guests

# Headers compile alone and without a warning, house rules hold, generated documents
# are fresh, and the plugin exports one symbol.
# Templates that a .c file includes once for each instruction set stand aside, and
# the headers of the kernel driver and its tests, which need those of the kernel.
TEMPLATES := kernel-uapi/% tests/kmod/% %_kernels.h
HEADERS := $(filter-out $(TEMPLATES),$(shell git ls-files '*.h' 2>/dev/null))
.PHONY: headers
headers: $(PROTO_C)
	$(Q)for h in $(HEADERS); do \
		$(CC) $(ALL_CFLAGS) -Werror -Wno-unused-function -fsyntax-only -x c $$h || exit 1; done

# make check-arm64: everything for arm64 by a cross compiler, unit tests under qemu-user.
.PHONY: check-arm64
check-arm64:
	$(Q)tools/packages.sh arm64
	$(Q)TESSERA_EMULATOR=qemu-aarch64-static TESSERA_TEST_SECONDS=1200 $(MAKE) \
		--no-print-directory CC=aarch64-linux-gnu-gcc BUILD=$(BUILD)/arm64 all unit \
		T='base_* hw_* tc_*'

# make reuse: every file says whose it is and its licence, as REUSE asks.
.PHONY: reuse
REUSE := $(BUILD)/reuse-venv
$(REUSE)/.made:
	$(Q)$(PYTHON) -m venv $(REUSE)
	$(Q)$(REUSE)/bin/pip -q install reuse==6.2.0
	$(Q)touch $@
reuse: $(REUSE)/.made
	$(Q)$(REUSE)/bin/reuse lint -q || $(REUSE)/bin/reuse lint

lint: headers $(PLUGIN) $(TOOLS)
	$(Q)$(PYTHON) tests/lint.py --build $(OUT)
	$(Q)$(PYTHON) tests/lint_test.py --build $(OUT)
	$(Q)$(PYTHON) tests/docs.py --check
	$(Q)test "$$(nm -D --defined-only $(PLUGIN) | awk '{print $$3}')" = GetPjrtApi || \
		{ echo "the plugin exports more than GetPjrtApi:"; nm -D --defined-only $(PLUGIN); exit 1; }

docs:
	$(Q)$(PYTHON) tests/docs.py --write

# make fuzz [F=bytecode] [S=60] [FUZZ_RUNS=n]: each target for S seconds or n runs.
S ?= 60
FUZZ_RUNS ?= -1
fuzz:
	$(Q)tools/packages.sh fuzz
	$(Q)$(MAKE) --no-print-directory MODE=fuzz fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ)
	$(Q)S=$(S) FUZZ_RUNS=$(FUZZ_RUNS) CORPUS=$(OUT)/corpus sh tests/fuzz/run.sh \
		$(if $(F),$(filter %/$(F)_fuzz,$(FUZZ)),$(FUZZ))

# make fuzz-ops [S=600] [UNTIL=FILE [LEAST=n]] [SEED=n] [JOBS=n] [JAX_SHARE=10] [PROGRAMS=n]
# [SHARDED=1]: JAX_SHARE percent go to JAX's CPU backend too; SHARDED: programs for several
# devices; UNTIL: it ends once FILE is there and LEAST programs were begun.
.PHONY: fuzz-ops
fuzz-ops: $(FUZZ_OPS) $(VENV)/.made
	$(Q)$(FUZZ_OPS) --seconds $(S) --jobs $(or $(JOBS),$(shell nproc)) --jax $(or $(JAX_SHARE),10) --python $(VENV)/bin/python \
		--out $(OUT)/fuzz-ops $(if $(SHARDED),--sharded) $(if $(UNTIL),--until $(UNTIL) $(if $(LEAST),--least $(LEAST))) $(if $(SEED),--seed $(SEED)) $(if $(PROGRAMS),--programs $(PROGRAMS))

help:
	@echo "make run     train two models in JAX on the device, beside the CPU backend"
	@echo "make run-spmd  train a transformer on eight chips of a mesh, beside one chip"
	@echo "make run-torch  train two models in PyTorch on the device, beside PJRT_DEVICE=CPU"
	@echo "make check-torch EXITS=50  torch_xla's documented functions on the device"
	@echo "make check-ecosystem      projects that build on JAX, on the device beside the CPU backend"
	@echo "make check   C and JAX tests;  T='hal_*' picks C programs, PYTEST='-k x' JAX ones"
	@echo "make check-vm  guest kernels under QEMU, on our model and QEMU's edu; T=T1 picks"
	@echo "make check-vm T=FUZZ  a million random ioctls against the driver"
	@echo "make check-vm-jax  JAX trains in a guest, through VFIO and the kernel driver"
	@echo "make check-jax-own JAX_TESTS=folder  the JAX project's own tests;  OWN='--only nn_test'"
	@echo "make fuzz-meshes SEED=n ROUNDS=10  programs in JAX on random meshes against one device"
	@echo "make check-jax-own-devices JAX_TESTS=folder  those that want several devices, on 8"
	@echo "make unit    the C tests alone; MODE=san|asan|ubsan|tsan|dbg builds them so"
	@echo "make check-model  C and JAX tests on a model that checks what programs read and write"
	@echo "make conformance  one suite on every way to a device;  make check-kill  kill -9"
	@echo "make check-conformance  the same on five ways as one table, three of them in guests"
	@echo "make install PREFIX=/usr/local DESTDIR=: library, headers, plugin, tools,"
	@echo "             udev rules, systemd unit, the driver's sources for DKMS; uninstall"
	@echo "make check-build  what packagers count on: flags, rebuilds, the same bytes twice"
	@echo "make numerics  errors of elementary functions, of 10^8 arguments each; then make docs"
	@echo "make dist    the sources as one archive"
	@echo "make bench   times and temporaries against XLA:CPU and memcpy; writes tests/bench/RESULTS.md"
	@echo "make bench-torch  times against PyTorch on the CPU (oneDNN, MKL); writes its section"
	@echo "make bench-growth  exponents of times by sizes, and two lanes against one; writes its section"
	@echo "make bench-spmd  collectives of 2, 4, 8 devices against XLA:CPU and memcpy; writes its section"
	@echo "make bench-watched  what looking costs: xla-smi's start, a snapshot, being watched"
	@echo "make bench-recovery  each injected error: told when, works again when; writes its section"
	@echo "make bench-ecosystem  check-ecosystem, whose times go to their section"
	@echo "make bench-transports  each way to a device, in guests too; writes its sections"
	@echo "make mutants  small bugs, one at a time: which suite notices?  M=heap picks"
	@echo "make check-arm64  a build for arm64, its unit tests under qemu-user"
	@echo "make reuse   every file says whose it is and under which licence"
	@echo "make lint    house rules, headers, documents;  make docs regenerates tables"
	@echo "make fuzz-ops S=seconds SEED=n JAX_SHARE=percent  random programs three ways"
	@echo "make fuzz    F=target S=seconds FUZZ_RUNS=n;  make wheel   the Python package"

.PHONY: clean
clean:
	rm -rf $(BUILD)

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
