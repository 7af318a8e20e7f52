// The secrets that are numbers: cards, phones, identity numbers.

#ifndef NUMBERS_H
#define NUMBERS_H

#include "runs.h"

typedef enum { CARD, PHONE, RESIDENT_ID, SECRET_COUNT } secret_t;

// Which numbers are looked for.
typedef struct {
  bool cards, known_issuers_only, chinese_mobile, international, resident_id;
} wanted_t;

// A secret in a run, with the digits that count.
typedef struct {
  secret_t secret;
  jf_span_t at;
  jf_string_t counting;
} found_t;

// The next secret of a run in its groups from `*from` on, which is moved behind it: whole groups, from the left, the longest
// reading first.
//
// Never a part of a group, so nothing inside a longer row of digits is taken for a card or a phone.
bool next_secret(const run_t *run, const wanted_t *wanted, size_t *from, found_t *found);

#endif
