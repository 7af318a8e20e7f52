// Drops a greeting at the beginning of the user's messages.

#include "jackfield.h"

// What `rules.toml` says: beginnings that are dropped, as written.
static jf_texts_t greetings;

void jf_describe(jf_description_t *ret) { *ret = jf_description("{{name}}", "0.1.0"); }

bool jf_configure(jf_string_t *config, jf_string_t *err) {
  const jf_json_t *root = jf_json(*config);
  if (!root) return jf_fail(err, "the configuration is not JSON");
  greetings = jf_as_texts(jf_get(root, "greetings"));
  return true;
}

// Length of the greeting with which a text begins; 0 for none.
static size_t greeting_length(jf_string_t text) {
  for (size_t n = 0; n < greetings.len; n++)
    if (jf_starts_with(text, greetings.ptr[n])) return greetings.ptr[n].len;
  return 0;
}

// How much of the beginning of this message may be dropped.
static size_t droppable(const jf_part_t *part) {
  // What the target holds already costs nothing, and an edit there would make it compute everything again.
  if (part->message.role != JF_ROLE_USER || part->cached_bytes > 0) return 0;
  jf_string_t text = part->message.text;
  size_t length = greeting_length(text);
  for (size_t n = 0; n < part->protected_.len; n++)
    if (part->protected_.ptr[n].start < length) return 0;
  return jf_is_blank(jf_slice(text, length, text.len)) ? 0 : length;
}

bool jf_compress(jf_turn_t *turn, jf_list_part_t *parts, jf_budget_t *budget, jf_list_edit_t *ret, jf_string_t *err) {
  *ret = (jf_list_edit_t){JF_NEW(jf_edit_t, parts->len), 0};
  for (size_t n = 0; n < parts->len; n++) {
    size_t length = droppable(&parts->ptr[n]);
    if (length > 0) ret->ptr[ret->len++] = (jf_edit_t){.message = n, .at = {0, length}};
  }
  return true;
}
