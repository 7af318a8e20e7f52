// What stands in the place of a secret: text, and places for characters of the secret that may be shown.

#ifndef MASK_H
#define MASK_H

#include "jackfield.h"

// Text, and after it so many of the first or the last characters.
typedef struct {
  jf_string_t text;
  size_t first, last;
} piece_t;

typedef struct {
  piece_t *pieces;
  size_t count;
} mask_t;

// Reads `[card] {last4}`.
bool mask_parse(jf_string_t written, mask_t *mask, jf_string_t *err);
// The mask for a secret, of which these are the characters that count. No more than half of them are ever shown.
jf_string_t mask_apply(const mask_t *mask, jf_string_t counting);

#endif
