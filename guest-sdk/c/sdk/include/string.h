/* The part of the C library that the bindings and the SDK need. `runtime.c` implements it. */
#ifndef WRKFLW_STRING_H
#define WRKFLW_STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *memory, int byte, size_t size);
int memcmp(const void *one, const void *other, size_t size);
size_t strlen(const char *text);
#endif
