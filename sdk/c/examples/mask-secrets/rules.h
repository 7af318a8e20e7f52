// What `rules.toml` says. What is left out is on, with a mask that names it.

#ifndef RULES_H
#define RULES_H

#include "mask.h"
#include "numbers.h"

// A watch, and what to do with its hits.
typedef struct {
  jf_watch_t watch;
  // Digits that may hold cards, phones and identity numbers; found again and judged here. Of any other watch the whole match
  // is a secret.
  bool is_numbers;
  mask_t mask;
} watched_t;

typedef struct {
  wanted_t wanted;
  mask_t masks[SECRET_COUNT];
  watched_t *watches;
  size_t watch_count;
} rules_t;

bool rules_read(const jf_json_t *root, rules_t *rules, jf_string_t *err);

#endif
