// What the generated bindings need of a C library.
#ifndef JACKFIELD_STDLIB_H
#define JACKFIELD_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void *realloc(void *block, size_t size);
void free(void *block);
_Noreturn void abort(void);

#endif
