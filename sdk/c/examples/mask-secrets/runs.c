#include "runs.h"

#include "text.h"

// How many separators may stand between two digits of a run.
#define MOST_SEPARATORS 3

#define DIGIT "[0-9０-９]"
#define SEPARATORS "[ \\u{a0}\\u{3000}()（）\\-－‐‑–]{0,3}"

const char RUNS_WATCH[] =
    "(?:[+＋]" DIGIT "(?:" SEPARATORS DIGIT "){6,}|" DIGIT "(?:" SEPARATORS DIGIT "){10,})[xXｘＸ]?";

static bool is_separator(uint32_t c) {
  switch (narrow(c)) {
    case ' ': case 0xa0: case '(': case ')': case '-':
    // Hyphen, hyphen that does not break, en dash.
    case 0x2010: case 0x2011: case 0x2013: return true;
    default: return false;
  }
}

static group_t *new_group(run_t *run) {
  if (run->group_count == run->group_room) {
    run->group_room = 2 * run->group_room + 8;
    run->groups = realloc(run->groups, run->group_room * sizeof *run->groups);
    if (!run->groups) abort();
  }
  return &run->groups[run->group_count++];
}

static void push(run_t *run, uint32_t digit, jf_span_t at) {
  size_t count = run->digits.text.len;
  group_t *last = run->group_count > 0 ? &run->groups[run->group_count - 1] : NULL;
  put_character(&run->digits, narrow(digit));
  if (last && last->at.end == at.start) {
    last->at.end = at.end;
    last->digits.end = count + 1;
  } else {
    *new_group(run) = (group_t){at, {count, count + 1}};
  }
}

// Takes the digit that goes on with a run of which the last one ended at `*end`; false where there is none.
static bool push_next(run_t *run, jf_string_t text, size_t *end) {
  size_t at = *end;
  for (int separators = 0; at < text.len; separators++) {
    size_t start = at;
    uint32_t c = next_character(text, &at);
    if (is_digit(c)) {
      push(run, c, (jf_span_t){start, at});
      *end = at;
      return true;
    }
    if (!is_separator(c) || separators == MOST_SEPARATORS) return false;
  }
  return false;
}

static size_t x_end(jf_string_t text, size_t at) {
  return at < text.len && (narrow(next_character(text, &at)) | 32) == 'x' ? at : 0;
}

bool next_run(jf_string_t text, size_t *at, run_t *run) {
  run->has_plus = false;
  run->digits.text.len = 0;
  run->group_count = 0;
  while (*at < text.len) {
    size_t start = *at;
    uint32_t c = next_character(text, at);
    if (!is_digit(c)) {
      run->has_plus = narrow(c) == '+';
      run->start = start;
      continue;
    }
    if (!run->has_plus) run->start = start;
    push(run, c, (jf_span_t){start, *at});
    while (push_next(run, text, at)) continue;
    run->x_end = x_end(text, *at);
    return true;
  }
  return false;
}
