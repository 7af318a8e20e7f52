//! GPT-2's way to write bytes as printable characters: `Ġ` for a space.

/// The character that stands for a byte in a vocabulary.
pub(super) fn to_char(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        // The 68 bytes that do not print are numbered upwards from U+0100, in order.
        0x00..=0x20 => shifted(u32::from(byte)),
        0x7f..=0xa0 => shifted(u32::from(byte) - 0x7f + 33),
        0xad => shifted(67),
    }
}

fn shifted(rank: u32) -> char {
    // Ranks are below 68: U+0100 to U+0143 are all characters.
    char::from_u32(0x100 + rank).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn to_byte(c: char) -> Option<u8> {
    match u32::from(c) {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => Some(c as u8),
        shifted @ 0x100..=0x120 => Some((shifted - 0x100) as u8),
        shifted @ 0x121..=0x142 => Some((shifted - 0x100 - 33 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// Appends the bytes that a vocabulary entry stands for; text outside the scheme stands for itself.
pub(super) fn decode(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    for c in text.chars() {
        match to_byte(c) {
            Some(byte) => out.push(byte),
            None => {
                out.truncate(start);
                out.extend_from_slice(text.as_bytes());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character_and_comes_back() {
        let mut seen = std::collections::HashSet::new();
        for byte in 0..=255u8 {
            let c = to_char(byte);
            assert!(seen.insert(c), "{byte:#x} shares {c}");
            assert_eq!(to_byte(c), Some(byte));
        }
        assert_eq!((to_char(b' '), to_char(b'\n'), to_char(0x7f), to_char(0xad)), ('Ġ', 'Ċ', 'ġ', 'Ń'));
    }

    #[test]
    fn foreign_text_stands_for_itself() {
        let mut out = b"x".to_vec();
        decode("Ġ中", &mut out);
        assert_eq!(out, "xĠ中".as_bytes());
    }
}
