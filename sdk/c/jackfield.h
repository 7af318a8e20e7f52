// What a Jackfield policy written in C uses. No C library is needed.
//
// `jf.h` is generated from the contract for the policy's kind; its types are named after the contract's (`jf_turn_t`,
// `jf_message_t`, `jf_list_message_t`). A policy defines three functions that are declared there:
//
//   void jf_describe(jf_description_t *ret);
//   bool jf_configure(jf_string_t *config, jf_string_t *err);
//   bool jf_extract(…), jf_route(…), jf_compress(…) or jf_review(…), by kind; an output filter also jf_interests.
//
// False says that the call failed; `return jf_fail(err, "why")` does both. Offsets are bytes of UTF-8, as everywhere in C.
//
// Memory is one arena: nothing needs to be freed. After `jf_configure` the host keeps the memory as it is, and every call
// starts from that, so what a call writes is gone with it. An answer may point into the arguments, into what `jf_configure`
// made, and to literals.

#ifndef JACKFIELD_H
#define JACKFIELD_H

#include <stdlib.h>
#include <string.h>

#include "jf.h"

// Zeroed memory for `count` values of a type. Ends the call where the policy's memory is used up.
#define JF_NEW(type, count) ((type *)jf_zeroed((count) * sizeof(type)))
void *jf_zeroed(size_t size);

// ---- Texts ----

// A literal as a text, not copied.
jf_string_t jf_text(const char *literal);
// The bytes `start..end` of a text, not copied; cut at its end.
jf_string_t jf_slice(jf_string_t text, size_t start, size_t end);
bool jf_equal(jf_string_t a, jf_string_t b);
bool jf_starts_with(jf_string_t text, jf_string_t prefix);
// Whether there is nothing but white space in it, by Unicode's rule.
bool jf_is_blank(jf_string_t text);

// A text in the making: `jf_writer_t out = {0}`, some `jf_put…`, then `out.text`. `{text}` begins with a text, which stays as
// it is.
typedef struct {
  jf_string_t text;
  size_t room;
} jf_writer_t;
void jf_put(jf_writer_t *out, jf_string_t text);
void jf_put_literal(jf_writer_t *out, const char *literal);
void jf_put_number(jf_writer_t *out, uint32_t number);

// Writes a scalar as UTF-8, at most four bytes, and gives how many.
size_t jf_encode(uint32_t scalar, uint8_t *to);

// Sets the error and gives false.
bool jf_fail(jf_string_t *err, const char *why);
bool jf_fail_with(jf_string_t *err, jf_string_t why);

// ---- Finding words ----

// A text made even for matching: full-width forms narrowed (`３` → `3`), letters in lower case. Knows where each byte came
// from.
typedef struct {
  jf_string_t text;
  // For each byte of `text` the span of the original scalar; NULL when every byte stands where it stood.
  jf_span_t *sources;
} jf_folded_t;
jf_folded_t jf_fold(jf_string_t original);

// Whether the term is in the text, and where it first is, as a span of the original text. An ASCII letter or digit at an
// edge of the term must not touch another one outside: `cat` is not in `category`, but is in `我的cat呢`. An empty term
// is nowhere. `at` may be NULL.
bool jf_find(const jf_folded_t *text, const jf_folded_t *term, jf_span_t *at);

// ---- The configuration ----

// JSON. Everything that reads a value takes NULL for one that is missing, and a `null` in the text is missing too.
typedef struct jf_json jf_json_t;
// NULL for what is not JSON.
const jf_json_t *jf_json(jf_string_t text);
// The value of a key of an object.
const jf_json_t *jf_get(const jf_json_t *object, const char *key);
// How many elements an array has; 0 for anything else.
size_t jf_count(const jf_json_t *array);
// An element of an array.
const jf_json_t *jf_at(const jf_json_t *array, size_t index);
// A text; an empty one for anything else.
jf_string_t jf_as_text(const jf_json_t *value);
// A number, or `otherwise` for anything else.
double jf_as_number(const jf_json_t *value, double otherwise);
// A truth value, or `otherwise` for anything else.
bool jf_as_bool(const jf_json_t *value, bool otherwise);
// The texts of an array; what is no text is empty.
typedef struct {
  jf_string_t *ptr;
  size_t len;
} jf_texts_t;
jf_texts_t jf_as_texts(const jf_json_t *array);

// ---- What a policy says of itself ----

// Name and version, and what is in `config.schema.json`. The other fields are 0.
jf_description_t jf_description(const char *name, const char *version);

#ifdef JF_SLOT_EXTRACTOR
// A slot that was found at `source` of the utterance, with confidence 1.
jf_slot_t jf_found(const char *name, jf_value_t value, jf_span_t source);
#endif

#ifdef JF_ROUTER
// Generate on this target, everything else left to the host; priority 100.
jf_decision_t jf_run_on(const jf_target_t *target);
#endif

#endif
