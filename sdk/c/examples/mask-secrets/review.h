// Finds what is to be masked in a window.

#ifndef REVIEW_H
#define REVIEW_H

#include "rules.h"

// What to do with one window: what is replaced, and how much is held.
bool review_window(const rules_t *rules, const jf_window_t *window, jf_verdict_t *verdict, jf_string_t *err);

#endif
