// Remembers the city that the user named.

#include "jackfield.h"

// What `rules.toml` says: cities as written and folded, and words, folded, with which the user takes the city back.
static struct {
  jf_texts_t cities;
  jf_folded_t *folded;
  jf_folded_t *forget;
  size_t forget_count;
} rules;

static jf_folded_t *fold_all(jf_texts_t texts) {
  jf_folded_t *folded = JF_NEW(jf_folded_t, texts.len);
  for (size_t n = 0; n < texts.len; n++) folded[n] = jf_fold(texts.ptr[n]);
  return folded;
}

void jf_describe(jf_description_t *ret) {
  *ret = jf_description("{{name}}", "0.1.0");
  ret->dialog_schema = 1;
}

bool jf_configure(jf_string_t *config, jf_string_t *err) {
  const jf_json_t *root = jf_json(*config);
  if (!root) return jf_fail(err, "the configuration is not JSON");
  jf_texts_t forget = jf_as_texts(jf_get(root, "forget"));
  rules.cities = jf_as_texts(jf_get(root, "cities"));
  rules.folded = fold_all(rules.cities);
  rules.forget = fold_all(forget);
  rules.forget_count = forget.len;
  return true;
}

static bool takes_back(const jf_folded_t *text) {
  for (size_t n = 0; n < rules.forget_count; n++)
    if (jf_find(text, &rules.forget[n], NULL)) return true;
  return false;
}

// The first city of the rules that is in the text.
static bool find_city(const jf_folded_t *text, jf_slot_t *slot) {
  for (size_t n = 0; n < rules.cities.len; n++) {
    jf_span_t at;
    if (!jf_find(text, &rules.folded[n], &at)) continue;
    *slot = jf_found("city", (jf_value_t){.tag = JF_VALUE_CHOICE, .val.choice = rules.cities.ptr[n]}, at);
    return true;
  }
  return false;
}

bool jf_extract(jf_turn_t *turn, jf_list_message_t *recent, jf_dialog_t *dialog, jf_transition_t *ret, jf_string_t *err) {
  if (recent->len == 0) return jf_fail(err, "there is no message");
  jf_folded_t text = jf_fold(recent->ptr[recent->len - 1].text);
  *ret = (jf_transition_t){.state = dialog->state, .next.tag = JF_NEXT_MODEL};
  jf_slot_t *city = JF_NEW(jf_slot_t, 1);
  if (takes_back(&text)) {
    ret->state = jf_text("");
    ret->clear = (jf_list_string_t){JF_NEW(jf_string_t, 1), 1};
    ret->clear.ptr[0] = jf_text("city");
  } else if (find_city(&text, city)) {
    ret->state = jf_text("city-known");
    ret->set = (jf_list_slot_t){city, 1};
  }
  return true;
}
