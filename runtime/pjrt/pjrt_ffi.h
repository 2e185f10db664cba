/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PJRT_PJRT_FFI_H
#define PJRT_PJRT_FFI_H
/*
 * Functions of the host that programs call by name, through XLA's FFI: who registers them
 * (pjrt_ffi.c), which there are (pjrt_ffi_registry.c), how they are called (pjrt_ffi_call.c), and
 * what they may ask (pjrt_ffi_api.c).
 *
 * What is registered is the process's and stays; everything here may be called from any thread, and
 * blocks for nothing but the functions themselves. Errors: a code, with the function's text.
 */
#include "runtime/pjrt/ffi_abi.h"
#include "runtime/pjrt/pjrt_wrap.h"

typedef struct XLA_FFI_Error *pjrt_ffi_handler(struct XLA_FFI_CallFrame *frame);

struct pjrt_ffi_target {
	struct pjrt_ffi_target *next;
	struct XLA_FFI_Handler_Bundle bundle;	/* execute is there */
	char name[];
};

/* What a handler keeps for later stages, and how it goes; type 0: nothing. */
struct pjrt_ffi_state {
	int64_t type;
	void *data;
	void (*deleter)(void *object);
};

/* Memory that a handler asked for and has not freed. */
struct pjrt_ffi_block { struct pjrt_ffi_block *next; void *data; };

/* What handlers are given and hand back: of a call of a loaded program, then of each of its
 * runs. */
struct XLA_FFI_ExecutionContext {
	int stage;		/* which runs */
	struct pjrt_ffi_state states[3];	/* of INSTANTIATE, PREPARE, INITIALIZE */
	struct XLA_FFI_ExecutionContext *call;	/* of a run: the call's; else NULL */
	const struct pjrt_run *run;	/* NULL: not of a run */
	unsigned device;
	struct pjrt_ffi_block *blocks;
};

struct XLA_FFI_Error { int code; char text[]; };

/* ---- pjrt_ffi_api.c: calls pjrt_ffi_registry.c ---- */
const struct XLA_FFI_Api *pjrt_ffi_api(void);
/* ALREADY_EXISTS: another is called so. INVALID_ARGUMENT: no name, no handler, or one that was
 * compiled for a later version. */
int pjrt_ffi_register(const char *name, size_t n, const struct XLA_FFI_Handler_Bundle *bundle,
		      struct err *err);
/* As an error of ours; frees e, which is not NULL. */
int pjrt_ffi_take_error(struct XLA_FFI_Error *e, struct err *err);
/* Until it is available; frees it. */
int pjrt_ffi_await(struct XLA_FFI_Future *f, struct err *err);
/* Frees blocks and states. */
void pjrt_ffi_clear(struct XLA_FFI_ExecutionContext *c);

/* ---- pjrt_ffi_registry.c ---- */
/* NULL: there is no such. */
const struct pjrt_ffi_target *pjrt_ffi_find(const char *name, size_t n);
/* pjrt_ffi_register without looking at the handlers. */
int pjrt_ffi_add(const char *name, size_t n, const struct XLA_FFI_Handler_Bundle *bundle,
		 struct err *err);
int pjrt_ffi_check_platform(const char *name, size_t n, struct err *err);
/* The type's number, a new one if `wanted` is 0; 0: *err says why there is none. */
int64_t pjrt_ffi_type(const char *name, size_t n, int64_t wanted, void (*deleter)(void *object),
		      struct err *err);
bool pjrt_ffi_find_type(int64_t id, void (**deleter)(void *object));
/* NULL: nobody registered it. */
const char *pjrt_ffi_type_name(int64_t id);

#endif
