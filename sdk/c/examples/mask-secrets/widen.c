#include "widen.h"

#include "text.h"

// What a hyphen stands for outside a class: a hyphen of any width, or one space of any width.
#define HYPHEN "[\\-－‐‑– \\u{a0}\\u{3000}]"
// What a hyphen adds inside a class.
#define CLASS_HYPHEN "－‐‑–"
#define DIGITS "0-9０-９"

// Stands behind the last character. No scalar is as large.
#define END UINT32_MAX

typedef enum { OUTSIDE, IN_CLASS } place_t;

typedef struct {
  jf_string_t regex;
  size_t at;
  jf_writer_t wide;
  // The first thing that was wrong; empty for nothing. Reading goes on to where it would end anyway.
  jf_string_t wrong;
} widening_t;

static void refuse(widening_t *in, jf_string_t why) {
  if (in->wrong.len == 0) in->wrong = why;
}

// ---- Reading and copying ----

static uint32_t next(widening_t *in) { return in->at < in->regex.len ? next_character(in->regex, &in->at) : END; }

static uint32_t peek(const widening_t *in) {
  size_t at = in->at;
  return at < in->regex.len ? next_character(in->regex, &at) : END;
}

static bool skip(widening_t *in, uint32_t expected) {
  if (peek(in) != expected) return false;
  next(in);
  return true;
}

static void put(widening_t *in, uint32_t c) { put_character(&in->wide, c); }

static void copy(widening_t *in, int count) {
  for (; count > 0 && peek(in) != END; count--) put(in, next(in));
}

static void copy_to(widening_t *in, uint32_t end) {
  uint32_t c;
  while ((c = next(in)) != END) {
    put(in, c);
    if (c == end) return;
  }
  jf_writer_t why = {0};
  jf_put_literal(&why, "`");
  put_character(&why, end);
  jf_put_literal(&why, "` is missing");
  refuse(in, why.text);
}

// ---- Characters that stand for themselves ----

// An escaped angle bracket is the edge of a word.
static bool may_be_escaped(uint32_t c) { return is_ascii_punctuation(c) && c != '<' && c != '>'; }

static void put_escaped(widening_t *in, uint32_t c) {
  if (may_be_escaped(c)) put(in, '\\');
  put(in, c);
}

static void literal(widening_t *in, uint32_t c, place_t place) {
  uint32_t form = full_width(c);
  if (form == 0) {
    put(in, c);
  } else if (place == IN_CLASS) {
    put_escaped(in, c);
    put(in, form);
    if (c == '-') jf_put_literal(&in->wide, CLASS_HYPHEN);
  } else if (c == '-') {
    jf_put_literal(&in->wide, HYPHEN);
  } else {
    put(in, '[');
    put_escaped(in, c);
    put(in, form);
    put(in, ']');
  }
}

// `a-z`, or `a` alone.
static void range_or_literal(widening_t *in, uint32_t low) {
  widening_t ahead = *in;
  uint32_t hyphen = next(&ahead), high = next(&ahead);
  if (hyphen != '-' || high == END || high == ']' || high == '[' || high == '\\' || high == '-') {
    literal(in, low, IN_CLASS);
    return;
  }
  in->at = ahead.at;
  put_escaped(in, low);
  put(in, '-');
  put_escaped(in, high);
  // The full-width space stands far before the other forms: Chinese characters would be in between.
  if (low == ' ' || full_width(low) == 0 || full_width(high) == 0) return;
  put(in, full_width(low));
  put(in, '-');
  put(in, full_width(high));
}

// ---- Syntax ----

// How many characters belong to an escape without braces: `\x41`, `\u3000`, `\pL`.
static int operands(uint32_t escaped) {
  switch (escaped) {
    case 'x': return 2;
    case 'u': return 4;
    case 'U': return 8;
    case 'p': case 'P': return 1;
    default: return 0;
  }
}

// What follows a backslash.
static void escape(widening_t *in, place_t place) {
  uint32_t c = next(in);
  if (c == END) {
    refuse(in, jf_text("ends in a backslash"));
  } else if (c == 'd') {
    jf_put_literal(&in->wide, place == IN_CLASS ? DIGITS : "[" DIGITS "]");
  } else if (may_be_escaped(c)) {
    literal(in, c, place);
  } else {
    put(in, '\\');
    put(in, c);
    // `\p{Han}`, `\u{3000}`, `\b{start}`: what is in the braces is a name, not text.
    if (peek(in) == '{' && (operands(c) > 0 || c == 'b')) copy_to(in, '}');
    else copy(in, operands(c));
  }
}

static void open_class(widening_t *in) {
  put(in, '[');
  if (skip(in, '^')) put(in, '^');
  // A bracket that comes first stands for itself.
  if (skip(in, ']')) literal(in, ']', IN_CLASS);
}

static void member(widening_t *in, uint32_t c) {
  if (c == '[') {
    // `[:alpha:]`.
    put(in, c);
    copy_to(in, ']');
  } else if ((c == '&' || c == '~' || c == '-') && skip(in, c)) {
    put(in, c);
    put(in, c);
  } else if (c != '\\') {
    range_or_literal(in, c);
  } else if (is_ascii_punctuation(peek(in))) {
    range_or_literal(in, next(in));
  } else {
    escape(in, IN_CLASS);
  }
}

// A class, of which the opening bracket was read, with the classes in it.
static void class(widening_t *in) {
  open_class(in);
  for (size_t depth = 1; depth > 0;) {
    uint32_t c = next(in);
    if (c == END) {
      refuse(in, jf_text("ends inside a class"));
      return;
    }
    if (c == ']') {
      put(in, c);
      depth--;
    } else if (c == '[' && peek(in) != ':') {
      open_class(in);
      depth++;
    } else {
      member(in, c);
    }
  }
}

// `(`, `(?:`, `(?i)`, `(?P<name>`: up to where text begins.
static void group(widening_t *in) {
  put(in, '(');
  if (!skip(in, '?')) return;
  put(in, '?');
  uint32_t c;
  while ((c = next(in)) != END) {
    put(in, c);
    if (c == 'x') refuse(in, jf_text("verbose mode needs `widths = false`"));
    if (c == '<') copy_to(in, '>');
    if (c == '<' || c == ':' || c == ')' || c == '>') return;
  }
  refuse(in, jf_text("ends inside a group"));
}

bool widen(jf_string_t regex, jf_string_t *wide, jf_string_t *err) {
  widening_t in = {.regex = regex};
  uint32_t c;
  while ((c = next(&in)) != END) {
    switch (c) {
      case '\\': escape(&in, OUTSIDE); break;
      case '[': class(&in); break;
      case '(': group(&in); break;
      case '{':
        put(&in, c);
        copy_to(&in, '}');
        break;
      case '*': case '+': case '?': case '|': case ')': case '^': case '$': case '.': put(&in, c); break;
      default: literal(&in, c, OUTSIDE);
    }
  }
  if (in.wrong.len > 0) return jf_fail_with(err, in.wrong);
  *wide = in.wide.text;
  return true;
}
