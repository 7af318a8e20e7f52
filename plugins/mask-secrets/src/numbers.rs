use std::ops::Range;

use crate::runs::{Group, Run};

/// What a number was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secret {
    Card,
    Phone,
    ResidentId,
}

/// Which numbers are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) cards: bool,
    pub(crate) known_issuers_only: bool,
    pub(crate) chinese_mobile: bool,
    pub(crate) international: bool,
    pub(crate) resident_id: bool,
}

/// A secret in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub(crate) secret: Secret,
    pub(crate) start: usize,
    pub(crate) end: usize,
    digits: &'a [u8],
    /// Whether the check character is an x.
    ends_in_x: bool,
}

impl Found<'_> {
    pub(crate) fn at(&self) -> Range<usize> {
        self.start..self.end
    }

    /// The digits that count, and the check character.
    pub(crate) fn counting(&self) -> impl Iterator<Item = char> + Clone {
        let digits = self.digits.iter().map(|digit| char::from(b'0' + digit));
        digits.chain(self.ends_in_x.then_some('X'))
    }
}

/// The secrets of a run: whole groups, from the left, the longest reading first.
///
/// Never a part of a group, so nothing inside a longer row of digits is taken for a card or a phone.
pub(crate) fn secrets(run: Run<'_>, wanted: Wanted) -> impl Iterator<Item = Found<'_>> {
    let fewest = if run.plus.is_some() { FEWEST_AFTER_PLUS } else { FEWEST_DIGITS };
    let mut from = if run.digits.len() < fewest { run.groups.len() } else { 0 };
    std::iter::from_fn(move || {
        while from < run.groups.len() {
            match secret_at(run, from, wanted) {
                Some((found, groups)) => {
                    from += groups;
                    return Some(found);
                }
                None => from += 1,
            }
        }
        None
    })
}

/// The smallest number of digits of any secret, with a plus sign and without.
const FEWEST_AFTER_PLUS: usize = 7;
const FEWEST_DIGITS: usize = 11;
/// The longest number of digits of any secret.
const MOST_DIGITS: usize = 19;

#[inline(never)]
fn secret_at(run: Run<'_>, from: usize, wanted: Wanted) -> Option<(Found<'_>, usize)> {
    if from == 0 && wanted.international {
        if let Some(found) = international(run) {
            return Some(found);
        }
    }
    let groups = &run.groups[from..];
    let mut total = 0;
    let fitting = groups.iter().take_while(|group| {
        total += group.digits.len();
        total <= MOST_DIGITS
    });
    (1..=fitting.count()).rev().find_map(|count| {
        let groups = &groups[..count];
        let digits = &run.digits[groups[0].digits.start..groups[count - 1].digits.end];
        let x_end = run.x_end.filter(|_| from + count == run.groups.len());
        let (start, end) = (groups[0].at.start, groups[count - 1].at.end);
        let found = Found { secret: Secret::Card, start, end, digits, ends_in_x: false };
        let resident_id = wanted.resident_id.then(|| resident_id_end(digits, end, x_end)).flatten();
        if let Some(end) = resident_id {
            let ends_in_x = digits.len() == 17;
            Some((Found { secret: Secret::ResidentId, end, ends_in_x, ..found }, count))
        } else if wanted.cards && is_card(groups, digits, wanted.known_issuers_only) {
            Some((found, count))
        } else if wanted.chinese_mobile && is_chinese_mobile(groups, digits) {
            let start = run.plus.filter(|_| from == 0).unwrap_or(start);
            Some((Found { secret: Secret::Phone, start, ..found }, count))
        } else {
            None
        }
    })
}

/// A plus sign and 7 to 15 digits; for China exactly its eleven.
fn international(run: Run<'_>) -> Option<(Found<'_>, usize)> {
    let start = run.plus?;
    let mut best = None;
    for (n, group) in run.groups.iter().enumerate() {
        let digits = &run.digits[..group.digits.end];
        let china = digits.starts_with(&[8, 6]);
        if digits.len() > 15 || (china && digits.len() > 13) {
            break;
        }
        if digits.len() >= FEWEST_AFTER_PLUS {
            let end = group.at.end;
            best = Some((Found { secret: Secret::Phone, start, end, digits, ends_in_x: false }, n + 1));
        }
    }
    best
}

/// Eleven digits from 13 to 19, perhaps after 86 or 0086. The first group is not shorter than the prefix of a network, so
/// that a date and a time do not become a phone.
fn is_chinese_mobile(groups: &[Group], digits: &[u8]) -> bool {
    let (prefix, number) = match digits {
        [0, 0, 8, 6, number @ ..] => (4, number),
        [8, 6, number @ ..] => (2, number),
        number => (0, number),
    };
    let first = groups[0].digits.len();
    let shaped = first >= prefix + 3
        || (prefix > 0 && first == prefix && groups.get(1).is_some_and(|g| g.digits.len() >= 3));
    number.len() == 11 && number[0] == 1 && number[1] >= 3 && shaped
}

/// Where the identity number ends, if the digits are one: six for the place, eight for the date of birth, three, and a
/// check character (ISO 7064, MOD 11-2), which may be an x.
fn resident_id_end(digits: &[u8], end: usize, x_end: Option<usize>) -> Option<usize> {
    let (check, end) = match digits.len() {
        18 => (digits[17], end),
        17 => (10, x_end?),
        _ => return None,
    };
    let weights = (0..17).rev().map(|n| (1u32 << (n + 1)) % 11);
    let sum: u32 = digits.iter().zip(weights).map(|(digit, weight)| u32::from(*digit) * weight).sum();
    let right = (12 - sum % 11) % 11 == u32::from(check);
    (right && digits[0] != 0 && is_date_of_birth(&digits[6..14])).then_some(end)
}

fn is_date_of_birth(digits: &[u8]) -> bool {
    let number =
        |range: Range<usize>| digits[range].iter().fold(0u32, |sum, digit| sum * 10 + u32::from(*digit));
    let (year, month, day) = (number(0..4), number(4..6), number(6..8));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 31,
    };
    (1850..=2149).contains(&year) && (1..=12).contains(&month) && (1..=days).contains(&day)
}

fn is_card(groups: &[Group], digits: &[u8], known_issuers_only: bool) -> bool {
    (13..=MOST_DIGITS).contains(&digits.len())
        && has_card_shape(groups)
        && digits.iter().any(|digit| *digit != 0)
        && luhn(digits)
        && (!known_issuers_only || is_issued(digits))
}

/// Cards are written in groups of the same size (4 4 4 4), or in a few long ones (4 6 5). Two dates in a row are not.
fn has_card_shape(groups: &[Group]) -> bool {
    let Some((_, inner)) = groups.split_last() else { return false };
    let same = inner.windows(2).all(|pair| pair[0].digits.len() == pair[1].digits.len());
    same || inner.iter().all(|group| group.digits.len() >= 3)
}

/// The check digit of cards (ISO/IEC 7812).
#[inline(never)]
fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(n, digit)| match (n % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum % 10 == 0
}

/// First and last prefix of four digits, and the lengths in which its cards are issued.
const ISSUED: [(u32, u32, &[usize]); 14] = [
    (2200, 2204, &[16, 17, 18, 19]),             // Mir
    (2221, 2720, &[16]),                         // Mastercard
    (3000, 3059, &[14, 15, 16, 17, 18, 19]),     // Diners Club
    (3095, 3095, &[14, 15, 16, 17, 18, 19]),     // Diners Club
    (3400, 3499, &[15]),                         // American Express
    (3528, 3589, &[16, 17, 18, 19]),             // JCB
    (3600, 3699, &[14, 15, 16, 17, 18, 19]),     // Diners Club
    (3700, 3799, &[15]),                         // American Express
    (3800, 3999, &[14, 15, 16, 17, 18, 19]),     // Diners Club
    (4000, 4999, &[13, 16, 18, 19]),             // Visa
    (5000, 5999, &[13, 14, 15, 16, 17, 18, 19]), // Mastercard, Maestro
    (6000, 6999, &[13, 14, 15, 16, 17, 18, 19]), // UnionPay 62, Discover, RuPay, Maestro
    (8100, 8199, &[16, 17, 18, 19]),             // UnionPay
    (9558, 9558, &[16, 17, 18, 19]),             // ICBC, issued before UnionPay
];

fn is_issued(digits: &[u8]) -> bool {
    let prefix = digits.iter().take(4).fold(0, |sum, digit| sum * 10 + u32::from(*digit));
    ISSUED
        .iter()
        .any(|(low, high, lengths)| (*low..=*high).contains(&prefix) && lengths.contains(&digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Runs;

    const ALL: Wanted = Wanted {
        cards: true,
        known_issuers_only: true,
        chinese_mobile: true,
        international: true,
        resident_id: true,
    };

    fn found(text: &str) -> Vec<(Secret, &str)> {
        found_with(text, ALL)
    }

    fn found_with(text: &str, wanted: Wanted) -> Vec<(Secret, &str)> {
        let mut runs = Runs::default();
        runs.find(text);
        let all = runs.iter().flat_map(|run| secrets(run, wanted));
        all.map(|found| (found.secret, &text[found.at()])).collect()
    }

    #[test]
    fn cards_in_every_grouping_and_width() {
        for card in [
            "4111111111111111",
            "4111 1111 1111 1111",
            "4111-1111-1111-1111",
            "４１１１\u{3000}１１１１－１１１１ 1111",
            "3782 822463 10005",
            "378282246310005",
            "6222 0212 3456 7890 128",
            "622202 1234567890128",
            "4222222222222",
            "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        ] {
            assert_eq!(found(&format!("卡号{card}，谢谢")), [(Secret::Card, card)]);
        }
    }

    #[test]
    fn what_only_looks_like_a_card_stays() {
        for no in [
            "4111111111111112",      // check digit
            "41111111111111111111",  // twenty digits
            "1234567812345670",      // nobody issues these
            "2024-01-03 2024-01-03", // two dates
            "0000000000000000",
            "3.1415926535",
        ] {
            assert_eq!(found(no), [], "{no}");
        }
        let any = Wanted { known_issuers_only: false, ..ALL };
        assert_eq!(found_with("1234567812345670", any), [(Secret::Card, "1234567812345670")]);
    }

    #[test]
    fn a_card_is_found_beside_other_groups_of_digits() {
        let text = "4111 1111 1111 1111 12/25";
        assert_eq!(found(text), [(Secret::Card, "4111 1111 1111 1111")]);
        let text = "13800138000 4111111111111111 13900139000";
        let kinds: Vec<_> = found(text).into_iter().map(|(secret, _)| secret).collect();
        assert_eq!(kinds, [Secret::Phone, Secret::Card, Secret::Phone]);
    }

    #[test]
    fn phones_with_and_without_prefix() {
        for phone in [
            "13800138000",
            "138 0013 8000",
            "138-0013-8000",
            "１３８００１３８０００",
            "+86 138 0013 8000",
            "+8613800138000",
            "86 13800138000",
            "008613800138000",
            "+1 (415) 555-2671",
            "+442071838750",
        ] {
            assert_eq!(found(&format!("打{phone}找我")), [(Secret::Phone, phone)]);
        }
        for no in ["12800138000", "138001380001", "1 38001380 00", "400-820-8820", "+12345"] {
            assert_eq!(found(no), [], "{no}");
        }
        assert_eq!(found("+86 13800138000 2024"), [(Secret::Phone, "+86 13800138000")]);
    }

    #[test]
    fn resident_ids_need_a_right_check_character_and_a_real_date() {
        for id in ["11010519491231002X", "11010519491231002x", "110105194912310021", "110105 19491231 002Ｘ"]
        {
            let expected = if id.ends_with('1') { vec![] } else { vec![(Secret::ResidentId, id)] };
            assert_eq!(found(&format!("身份证{id}。")), expected);
        }
        assert_eq!(found("440524188001010014"), [(Secret::ResidentId, "440524188001010014")]);
        // The same check sum with a thirteenth month: 17 digits and any last one.
        for last in 0..10 {
            let text = format!("11010519491331002{last}");
            assert!(found(&text).iter().all(|(secret, _)| *secret != Secret::ResidentId), "{text}");
        }
    }

    #[test]
    fn kinds_that_are_not_wanted_are_not_found() {
        let none =
            Wanted { cards: false, chinese_mobile: false, international: false, resident_id: false, ..ALL };
        assert_eq!(found_with("4111111111111111, 13800138000, +442071838750, 11010519491231002X", none), []);
    }
}
