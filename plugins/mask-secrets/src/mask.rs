/// What stands in the place of a secret: text, and places for characters of the secret that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mask(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    First(usize),
    Last(usize),
}

impl Mask {
    /// Reads `[card] {last4}`.
    pub(crate) fn parse(written: &str) -> Result<Mask, String> {
        let mut pieces = Vec::new();
        let mut rest = written;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').map(|close| open + close);
            let place = close.and_then(|close| place(&rest[open + 1..close]));
            let (Some(close), Some(place)) = (close, place) else {
                return Err(format!(
                    "mask `{written}`: only {{first1}} to {{first9}} and {{last1}} to {{last9}} are known"
                ));
            };
            pieces.push(Piece::Text(rest[..open].to_owned()));
            pieces.push(place);
            rest = &rest[close + 1..];
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Mask(pieces))
    }

    /// The mask for a secret, of which these are the characters that count.
    ///
    /// No more than half of them are ever shown.
    pub(crate) fn apply(&self, counting: impl Iterator<Item = char> + Clone) -> String {
        // Most masks show nothing, and nothing is counted for them.
        if let [Piece::Text(text)] = self.0.as_slice() {
            return text.clone();
        }
        let length = counting.clone().count();
        let mut left = length / 2;
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::First(n) => text.extend(counting.clone().take(take(&mut left, *n))),
                Piece::Last(n) => text.extend(counting.clone().skip(length - take(&mut left, *n))),
            }
        }
        text
    }
}

fn take(left: &mut usize, wanted: usize) -> usize {
    let taken = wanted.min(*left);
    *left -= taken;
    taken
}

fn place(name: &str) -> Option<Piece> {
    let count = |digits: &str| digits.parse().ok().filter(|n| (1..=9).contains(n) && digits.len() == 1);
    match name.strip_prefix("first") {
        Some(digits) => count(digits).map(Piece::First),
        None => count(name.strip_prefix("last")?).map(Piece::Last),
    }
}

#[cfg(test)]
mod tests {
    use super::Mask;

    fn masked(mask: &str, secret: &str) -> String {
        Mask::parse(mask).expect("a mask").apply(secret.chars())
    }

    #[test]
    fn parts_of_the_secret_are_shown_where_the_mask_says() {
        assert_eq!(masked("[card]", "4111111111111111"), "[card]");
        assert_eq!(masked("{first3}****{last4}", "13800138000"), "138****00");
        assert_eq!(masked("{first3}****{last4}", "13800138000999"), "138****0999");
        assert_eq!(masked("尾号{last4}", "4111111111111234"), "尾号1234");
    }

    #[test]
    fn never_more_than_half_is_shown() {
        assert_eq!(masked("{last9}", "1234"), "34");
        assert_eq!(masked("{first2}{last2}", "abc"), "a");
        assert_eq!(masked("{last4}", ""), "");
    }

    #[test]
    fn an_unknown_place_is_refused() {
        for bad in ["{all}", "{last}", "{last0}", "{first12}", "{last4", "{}"] {
            assert!(Mask::parse(bad).is_err(), "{bad}");
        }
    }
}
