// Digits of one number, perhaps: groups of digits with a few separators between them.

#ifndef RUNS_H
#define RUNS_H

#include "jackfield.h"

// The watch for runs that can be of interest: a plus sign and seven digits, or eleven digits. Finds the runs of `next_run`,
// whole.
extern const char RUNS_WATCH[];

// Digits without anything between them.
typedef struct {
  // Where in the text.
  jf_span_t at;
  // Where among the digits of the run.
  jf_span_t digits;
} group_t;

typedef struct {
  // Where the first digit begins, or the plus sign in front of it.
  size_t start;
  bool has_plus;
  // All digits, in ASCII.
  jf_writer_t digits;
  group_t *groups;
  size_t group_count, group_room;
  // Where an x directly after the last digit ends: the check character of some identity numbers. 0 for none.
  size_t x_end;
} run_t;

// The next run from `*at` on, however short; `*at` is moved behind it. A run that was read before gives its memory.
bool next_run(jf_string_t text, size_t *at, run_t *run);

#endif
