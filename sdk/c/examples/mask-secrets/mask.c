#include "mask.h"

#include "text.h"

// Where a byte is at or after `at`; the end of the text where it is not.
static size_t find(jf_string_t text, uint8_t byte, size_t at) {
  while (at < text.len && text.ptr[at] != byte) at++;
  return at;
}

// `first3`, `last4`: what is in the braces.
static bool read_place(jf_string_t name, piece_t *piece) {
  if (name.len == 0) return false;
  uint8_t digit = name.ptr[name.len - 1];
  jf_string_t word = jf_slice(name, 0, name.len - 1);
  if (digit < '1' || digit > '9') return false;
  if (jf_equal(word, jf_text("first"))) piece->first = digit - '0';
  else if (jf_equal(word, jf_text("last"))) piece->last = digit - '0';
  else return false;
  return true;
}

static bool fail_unknown(jf_string_t written, jf_string_t *err) {
  jf_writer_t why = {0};
  jf_put_literal(&why, "mask `");
  jf_put(&why, written);
  jf_put_literal(&why, "`: only {first1} to {first9} and {last1} to {last9} are known");
  return jf_fail_with(err, why.text);
}

bool mask_parse(jf_string_t written, mask_t *mask, jf_string_t *err) {
  size_t places = 0;
  for (size_t at = 0; at < written.len; at++) places += written.ptr[at] == '{';
  *mask = (mask_t){JF_NEW(piece_t, places + 1), 0};
  size_t at = 0;
  while (true) {
    piece_t *piece = &mask->pieces[mask->count++];
    size_t open = find(written, '{', at), close = find(written, '}', open);
    piece->text = jf_slice(written, at, open);
    if (open == written.len) return true;
    if (close == written.len || !read_place(jf_slice(written, open + 1, close), piece)) return fail_unknown(written, err);
    at = close + 1;
  }
}

static size_t count_characters(jf_string_t text) {
  size_t count = 0;
  for (size_t at = 0; at < text.len; count++) next_character(text, &at);
  return count;
}

static size_t take(size_t *left, size_t wanted) {
  size_t taken = wanted < *left ? wanted : *left;
  *left -= taken;
  return taken;
}

// Where the character of this number begins.
static size_t offset_of(jf_string_t text, size_t number) {
  size_t at = 0;
  for (; number > 0; number--) next_character(text, &at);
  return at;
}

jf_string_t mask_apply(const mask_t *mask, jf_string_t counting) {
  size_t count = count_characters(counting), left = count / 2;
  jf_writer_t shown = {0};
  for (size_t n = 0; n < mask->count; n++) {
    const piece_t *piece = &mask->pieces[n];
    size_t first = take(&left, piece->first), last = take(&left, piece->last);
    jf_put(&shown, piece->text);
    jf_put(&shown, jf_slice(counting, 0, offset_of(counting, first)));
    jf_put(&shown, jf_slice(counting, offset_of(counting, count - last), counting.len));
  }
  return shown.text;
}
