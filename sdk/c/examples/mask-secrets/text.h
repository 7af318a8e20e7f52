// Text by the character: read from UTF-8, narrowed, judged.

#ifndef TEXT_H
#define TEXT_H

#include "jackfield.h"

// The character at `*at`, which is moved behind it. The text is valid UTF-8: the host saw to that.
uint32_t next_character(jf_string_t text, size_t *at);
void put_character(jf_writer_t *out, uint32_t c);
// Whether this is a place between characters, or an end of the text.
bool is_boundary(jf_string_t text, size_t at);

// The ASCII form of a full-width character (`３` → `3`, the ideographic space → space); every other one as it is.
uint32_t narrow(uint32_t c);
// The full-width form of an ASCII character; 0 where it has none.
uint32_t full_width(uint32_t c);

// Digits are ASCII or full-width.
bool is_digit(uint32_t c);
// Letters and numbers of every script.
bool is_alphanumeric(uint32_t c);
bool is_ascii_punctuation(uint32_t c);

#endif
