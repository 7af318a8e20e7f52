//! What stays because of its neighbours: what a negation negates, and names beside the words that announce them.

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
            _ => {}
        }
    }
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
