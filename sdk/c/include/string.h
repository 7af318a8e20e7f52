// What the generated bindings, and the compiler by itself, need of a C library.
#ifndef JACKFIELD_STRING_H
#define JACKFIELD_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
int memcmp(const void *a, const void *b, size_t count);
size_t strlen(const char *text);

#endif
