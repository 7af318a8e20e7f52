#include "text.h"

#include "alphanumeric.h"

uint32_t next_character(jf_string_t text, size_t *at) {
  uint8_t first = text.ptr[(*at)++];
  if (first < 0x80) return first;
  int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  uint32_t c = first & (0x3f >> more);
  for (; more > 0; more--) c = c << 6 | (text.ptr[(*at)++] & 0x3f);
  return c;
}

void put_character(jf_writer_t *out, uint32_t c) {
  uint8_t bytes[4];
  jf_put(out, (jf_string_t){bytes, jf_encode(c, bytes)});
}

bool is_boundary(jf_string_t text, size_t at) {
  return at == text.len || (at < text.len && (text.ptr[at] & 0xc0) != 0x80);
}

uint32_t narrow(uint32_t c) {
  if (c == 0x3000) return ' ';
  return c >= 0xff01 && c <= 0xff5e ? c - 0xfee0 : c;
}

uint32_t full_width(uint32_t c) {
  if (c == ' ') return 0x3000;
  return c >= '!' && c <= '~' ? c + 0xfee0 : 0;
}

bool is_digit(uint32_t c) {
  c = narrow(c);
  return c >= '0' && c <= '9';
}

bool is_alphanumeric(uint32_t c) {
  size_t low = 0, high = sizeof ALPHANUMERIC / sizeof *ALPHANUMERIC;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (c < ALPHANUMERIC[middle].first) high = middle;
    else if (c > ALPHANUMERIC[middle].last) low = middle + 1;
    else return true;
  }
  return false;
}

bool is_ascii_punctuation(uint32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
