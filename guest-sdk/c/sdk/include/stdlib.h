/* The part of the C library that the bindings and the SDK need. `runtime.c` implements it. */
#ifndef WRKFLW_STDLIB_H
#define WRKFLW_STDLIB_H
#include <stddef.h>
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
void free(void *memory);
_Noreturn void abort(void);
#endif
