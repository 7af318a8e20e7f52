//! Writes alphanumeric.h: the letters and numbers of every script, as ranges, as Rust knows them.
//!
//! `rustc -O -o /tmp/make make_alphanumeric.rs && /tmp/make > alphanumeric.h`

fn main() {
    let mut ranges: Vec<(char, char)> = Vec::new();
    for c in ('\0'..=char::MAX).filter(|c| c.is_alphanumeric()) {
        match ranges.last_mut() {
            Some((_, last)) if u32::from(*last) + 1 == u32::from(c) => *last = c,
            _ => ranges.push((c, c)),
        }
    }
    let (major, minor, patch) = char::UNICODE_VERSION;
    println!("// Made by make_alphanumeric.rs from Unicode {major}.{minor}.{patch}.");
    println!("static const struct {{ uint32_t first, last; }} ALPHANUMERIC[] = {{");
    for line in ranges.chunks(6) {
        let pairs = line
            .iter()
            .map(|(first, last)| format!("{{{:#x}, {:#x}}},", u32::from(*first), u32::from(*last)));
        println!("    {}", pairs.collect::<Vec<_>>().join(" "));
    }
    println!("}};");
}
