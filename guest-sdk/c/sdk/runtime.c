/* The functions of the C library that a component needs. Memory is never freed, because an instance of a component answers one call. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 65536, ALIGNMENT = 16 };
extern unsigned char __heap_base;
static uintptr_t next;

static void *taken(size_t size) {
  if (next == 0) next = (uintptr_t)&__heap_base;
  uintptr_t at = (next + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1), end = at + size;
  if (end < at) abort();
  uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == SIZE_MAX) abort();
  next = end;
  return (void *)at;
}

/* `realloc` needs the size, which is stored before the memory. */
void *malloc(size_t size) {
  if (size > SIZE_MAX - ALIGNMENT) abort();
  unsigned char *memory = taken(ALIGNMENT + size);
  *(size_t *)memory = size;
  return memory + ALIGNMENT;
}

void *calloc(size_t count, size_t size) {
  size_t all;
  if (__builtin_mul_overflow(count, size, &all)) abort();
  return memset(malloc(all), 0, all);
}

void *realloc(void *old, size_t size) {
  if (old == NULL) return malloc(size);
  size_t had = *(size_t *)((unsigned char *)old - ALIGNMENT);
  if (size <= had) return old;
  /* Lists grow by one item at a time, so a grown list gets room for more. */
  return memcpy(malloc(had <= SIZE_MAX / 2 && 2 * had > size ? 2 * had : size), old, had);
}

void free(void *memory) { (void)memory; }
void abort(void) { __builtin_trap(); }

/* `wrkflw plugin build` passes `-mbulk-memory`. With it, each of these is an instruction. Without it, each would call itself. */
#ifndef __wasm_bulk_memory__
#error "compile with -mbulk-memory"
#endif
void *memcpy(void *to, const void *from, size_t size) { return __builtin_memcpy(to, from, size); }
void *memmove(void *to, const void *from, size_t size) { return __builtin_memmove(to, from, size); }
void *memset(void *memory, int byte, size_t size) { return __builtin_memset(memory, byte, size); }

int memcmp(const void *one, const void *other, size_t size) {
  const unsigned char *a = one, *b = other;
  for (; size--; a++, b++)
    if (*a != *b) return *a - *b;
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != 0) length++;
  return length;
}
