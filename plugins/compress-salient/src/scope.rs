//! What stays because of its neighbours: what a negation negates, names beside the words that announce them, what completes a verb,
//! and what joins two words that stay.

use crate::glyphs::{Glyphs, is_wide};
use crate::pieces::{Class, Kind, Piece, Why};

/// Words that an English negation reaches over to the word that it negates: not (really a) problem.
const REACH_WORDS: usize = 4;
/// Chinese glyphs behind a negation, which hold what is negated.
const NEGATED_GLYPHS: usize = 2;
/// Chinese glyphs of a name: behind 姓 or 叫, before 先生.
const NAME_GLYPHS: usize = 3;

/// Marks them kept.
pub fn keep(glyphs: &Glyphs<'_>, pieces: &mut [Piece]) {
    for at in 0..pieces.len() {
        let behind = at + 1..pieces.len();
        match pieces[at].kind {
            Kind::Kept(Why::Negation) if is_chinese(glyphs, &pieces[at]) => {
                chinese(glyphs, pieces, behind, NEGATED_GLYPHS);
            }
            Kind::Kept(Why::Negation) => english_negation(pieces, at),
            Kind::Kept(Why::NameAfter) => chinese(glyphs, pieces, behind, NAME_GLYPHS),
            Kind::Kept(Why::NameBefore) => chinese(glyphs, pieces, (0..at).rev(), NAME_GLYPHS),
            Kind::Kept(Why::Verb) if is_chinese(glyphs, &pieces[at]) => completion(glyphs, pieces, at),
            Kind::Word(Class::Pause) => pause(glyphs, pieces, at),
            Kind::Word(Class::Character) => repeated(glyphs, pieces, at),
            _ => {}
        }
    }
    function_words(pieces);
}

/// The character behind a verb says what comes of it: 发错, 退回, 买贵.
fn completion(glyphs: &Glyphs<'_>, pieces: &mut [Piece], at: usize) {
    if let Some(next) = pieces.get_mut(at + 1)
        && next.kind == Kind::Word(Class::Character)
        && is_chinese(glyphs, next)
    {
        keep_word(next);
    }
}

/// A sound of thinking, or a part of what is said: then it stays with what is beside it.
fn pause(glyphs: &Glyphs<'_>, pieces: &mut [Piece], at: usize) {
    let is_sound = pieces[at].glyphs.len() == 1 && is_chinese(glyphs, &pieces[at]);
    let near = [Some(after(pieces, at)), before(pieces, at).filter(|_| !is_sound)];
    let said: Vec<usize> =
        near.into_iter().flatten().filter(|near| pieces.get(*near).is_some_and(is_word)).collect();
    match said.is_empty() {
        true => pieces[at].kind = Kind::Word(Class::Filler),
        false => said.into_iter().chain([at]).for_each(|at| keep_word(&mut pieces[at])),
    }
}

/// 看看, 试一试: what is said twice is one word.
fn repeated(glyphs: &Glyphs<'_>, pieces: &mut [Piece], at: usize) {
    let text = |at: usize| pieces.get(at).map(|piece: &Piece| glyphs.text(&piece.glyphs));
    let same = |other: usize| text(other) == text(at);
    let between = || text(at + 1).is_some_and(|text| matches!(text, "一" | "了"));
    let end = match () {
        () if same(at + 1) => at + 2,
        () if between() && same(at + 2) => at + 3,
        () => return,
    };
    pieces[at..end].iter_mut().for_each(keep_word);
}

/// Words that hold a sentence together stay behind a verb or a number (want the, 4 is), before what stays and is no verb (a 3rd, can I
/// still), and where nothing follows that they could hold. A filler stays before a number: just two.
fn function_words(pieces: &mut [Piece]) {
    let kept = |at: usize| match pieces.get(at)?.kind {
        Kind::Kept(why) => Some(why),
        _ => None,
    };
    let belongs = |at: usize| {
        let next = after(pieces, at);
        let (left, right) = (before(pieces, at).and_then(kept), kept(next));
        match pieces[at].kind {
            Kind::Word(Class::Filler) => matches!(right, Some(Why::Number | Why::Time)),
            Kind::Word(Class::Function) => {
                let leads = right.is_some_and(|why| match why {
                    Why::Fixed | Why::Other => false,
                    Why::Verb => left.is_some(),
                    _ => true,
                });
                let end = pieces.get(next).map(|piece| piece.kind);
                let ends = matches!(end, None | Some(Kind::Line | Kind::Comma | Kind::Stop | Kind::Close));
                matches!(left, Some(Why::Verb | Why::Number | Why::Time)) || leads || ends
            }
            _ => false,
        }
    };
    let stay: Vec<usize> = (0..pieces.len()).filter(|at| belongs(*at)).collect();
    stay.into_iter().for_each(|at| keep_word(&mut pieces[at]));
}

/// The piece before, a space skipped.
fn before(pieces: &[Piece], at: usize) -> Option<usize> {
    let last = at.checked_sub(1)?;
    if pieces[last].kind == Kind::Space { last.checked_sub(1) } else { Some(last) }
}

/// The piece behind, a space skipped.
fn after(pieces: &[Piece], at: usize) -> usize {
    let is_space = pieces.get(at + 1).is_some_and(|piece| piece.kind == Kind::Space);
    at + 1 + usize::from(is_space)
}

fn is_word(piece: &Piece) -> bool {
    matches!(piece.kind, Kind::Kept(_) | Kind::Word(_))
}

/// Keeps so many Chinese glyphs, in whole pieces.
fn chinese(glyphs: &Glyphs<'_>, pieces: &mut [Piece], near: impl Iterator<Item = usize>, most: usize) {
    let mut kept = 0;
    for at in near {
        let is_word = matches!(pieces[at].kind, Kind::Word(_) | Kind::Kept(_));
        if kept >= most || !is_word || !is_chinese(glyphs, &pieces[at]) {
            return;
        }
        kept += pieces[at].glyphs.len();
        keep_word(&mut pieces[at]);
    }
}

/// Keeps the words up to the first that carries meaning, and a helping verb before: (is) not really good.
fn english_negation(pieces: &mut [Piece], at: usize) {
    let helping = at.checked_sub(2).filter(|_| pieces[at - 1].kind == Kind::Space);
    if let Some(before) = helping.filter(|&before| pieces[before].kind == Kind::Word(Class::Function)) {
        keep_word(&mut pieces[before]);
    }
    let mut words = 0;
    for piece in &mut pieces[at + 1..] {
        match piece.kind {
            Kind::Space => continue,
            Kind::Word(Class::Filler | Class::Function) if words < REACH_WORDS => keep_word(piece),
            Kind::Word(_) => return keep_word(piece),
            Kind::Kept(Why::Word) if words < REACH_WORDS => {}
            _ => return,
        }
        words += 1;
    }
}

fn keep_word(piece: &mut Piece) {
    if let Kind::Word(_) = piece.kind {
        piece.kind = Kind::Kept(Why::Word);
    }
}

fn is_chinese(glyphs: &Glyphs<'_>, piece: &Piece) -> bool {
    glyphs.get(piece.glyphs.start).is_some_and(is_wide)
}
