use serde::Deserialize;

/// `rules.toml`. What is left out is on, with a mask that names it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bank cards.
    pub card: Card,
    /// Phone numbers.
    pub phone: Phone,
    /// E-mail addresses.
    pub email: Email,
    /// Chinese resident identity numbers.
    pub resident_id: ResidentId,
    /// The author's own patterns.
    pub pattern: Vec<Pattern>,
}

/// Section `[card]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Card {
    /// Whether cards are looked for.
    pub enabled: bool,
    /// What stands in their place.
    pub mask: String,
    /// Only numbers that begin as issued cards do.
    pub known_issuers_only: bool,
}

impl Default for Card {
    fn default() -> Self {
        Card { enabled: true, mask: "[card]".into(), known_issuers_only: true }
    }
}

/// Section `[phone]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Phone {
    /// Whether phone numbers are looked for.
    pub enabled: bool,
    /// What stands in their place.
    pub mask: String,
    /// Eleven digits from 13 to 19, with or without the country's prefix.
    pub chinese_mobile: bool,
    /// A plus sign and 7 to 15 digits.
    pub international: bool,
}

impl Default for Phone {
    fn default() -> Self {
        Phone { enabled: true, mask: "[phone]".into(), chinese_mobile: true, international: true }
    }
}

/// Section `[email]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Email {
    /// Whether addresses are looked for.
    pub enabled: bool,
    /// What stands in their place.
    pub mask: String,
}

impl Default for Email {
    fn default() -> Self {
        Email { enabled: true, mask: "[email]".into() }
    }
}

/// Section `[resident_id]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResidentId {
    /// Whether identity numbers are looked for.
    pub enabled: bool,
    /// What stands in their place.
    pub mask: String,
}

impl Default for ResidentId {
    fn default() -> Self {
        ResidentId { enabled: true, mask: "[id]".into() }
    }
}

/// One `[[pattern]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// Its name, for logs.
    pub name: String,
    /// What is looked for, in the syntax of Rust's regex crate.
    pub regex: String,
    /// What stands in its place; the name in brackets when left out.
    pub mask: Option<String>,
    /// Whether full-width forms match as well.
    #[serde(default = "yes")]
    pub widths: bool,
}

fn yes() -> bool {
    true
}
