//! What is written at an atom: its element, hydrogens and charge.

use gfn_plot::{Canvas, Colour, TextAnchor};

use super::place::{Place, angle, minus};
use crate::{Element, Molecule};

/// The height of letters, in bond lengths.
const SIZE: f64 = 0.46;
/// Numbers of hydrogens and charges, to that.
const SMALL: f64 = 0.72;
/// Half the height of a capital, to the height of letters.
const HALF: f64 = 0.37;
/// Between a label and the bonds that lead to it.
const ROOM: f64 = 0.07;

/// What is written at an atom, in bond lengths: to the right and down from the atom.
pub(super) struct Label {
    pieces: Vec<Piece>,
    colour: Colour,
}

/// A text from its start at a point, the size of its letters, and its width, which takes long to measure.
struct Piece {
    at: Place,
    text: String,
    size: f64,
    width: f64,
}

impl Piece {
    fn new(at: Place, text: String, size: f64) -> Self {
        let width = width(&text, size);
        Self { at, text, size, width }
    }
}

fn width(text: &str, size: f64) -> f64 {
    Canvas::text_width(text, 100.0) * size / 100.0
}

/// Where the hydrogens are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Right,
    Left,
    Below,
    Above,
}

impl Label {
    /// The label of an atom; `None` for a carbon that bonds show already. Places are to the right and down.
    pub(super) fn of(molecule: &Molecule, places: &[Place], a: usize) -> Option<Self> {
        let atom = molecule.atoms()[a];
        let shown = molecule.neighbours(a).len() > 0 && molecule.atoms().len() > 2;
        if atom.element == Element::C && atom.charge == 0 && shown {
            return None;
        }
        let element = atom.element.symbol();
        let half = width(element, SIZE) / 2.0;
        let mut pieces = vec![Piece::new((-half, 0.0), element.to_owned(), SIZE)];
        let (mut right, small) = (half, SIZE * SMALL);
        if atom.hydrogens > 0 {
            let number = if atom.hydrogens > 1 { atom.hydrogens.to_string() } else { String::new() };
            let (letter, all) = (width("H", SIZE), width("H", SIZE) + width(&number, small));
            let (x, y) = match side(molecule, places, a) {
                Side::Right => (half, 0.0),
                Side::Left => (-half - all, 0.0),
                Side::Below => (-letter / 2.0, 0.95 * SIZE),
                Side::Above => (-letter / 2.0, -0.95 * SIZE),
            };
            if x == half {
                right += all;
            }
            pieces.push(Piece::new((x, y), "H".to_owned(), SIZE));
            if !number.is_empty() {
                pieces.push(Piece::new((x + letter, y + 0.3 * SIZE), number, small));
            }
        }
        if atom.charge != 0 {
            let sign = if atom.charge > 0 { "+" } else { "\u{2212}" };
            let number = if atom.charge.abs() > 1 { atom.charge.abs().to_string() } else { String::new() };
            pieces.push(Piece::new((right, -0.35 * SIZE), number + sign, small));
        }
        Some(Self { pieces, colour: colour(atom.element) })
    }

    /// The corners of the boxes that its texts fill.
    pub(super) fn boxes(&self) -> impl Iterator<Item = (Place, Place)> {
        self.pieces.iter().map(|Piece { at: (x, y), size, width, .. }| {
            ((x - ROOM, y - HALF * size - ROOM), (x + width + ROOM, y + HALF * size + ROOM))
        })
    }

    /// `true` if it covers a point, seen from the atom.
    pub(super) fn covers(&self, point: Place) -> bool {
        self.boxes().any(|(low, high)| low.0 < point.0 && point.0 < high.0 && low.1 < point.1 && point.1 < high.1)
    }

    /// Writes it at an atom's point of the canvas; a bond has a length of `unit`.
    pub(super) fn write(&self, canvas: &mut Canvas, at: Place, unit: f64) {
        for Piece { at: (x, y), text, size, .. } in &self.pieces {
            canvas.text((at.0 + unit * x, at.1 + unit * y), text, unit * size, self.colour, TextAnchor::Left);
        }
    }
}

/// The side on which the fewest bonds are, to the right or left if that will do.
fn side(molecule: &Molecule, places: &[Place], a: usize) -> Side {
    if molecule.neighbours(a).len() == 0 && molecule.atoms()[a].element.outer_electrons() > 5 {
        // Water is H2O, ammonia NH3.
        return Side::Left;
    }
    let right_angle = std::f64::consts::FRAC_PI_2;
    let sides = [(Side::Right, 0.0, 0.0), (Side::Left, 2.0, 0.05), (Side::Below, 1.0, 1.1), (Side::Above, -1.0, 1.1)];
    let covered = |turns: f64| {
        let bonds = molecule.neighbours(a).map(|(b, _)| (angle(places[a], places[b]) - turns * right_angle).cos());
        bonds.fold(-1.0, f64::max)
    };
    let best = sides.into_iter().min_by(|a, b| (covered(a.1) + a.2).total_cmp(&(covered(b.1) + b.2)));
    best.map_or(Side::Right, |(side, ..)| side)
}

/// Colours that chemists expect, dark enough for letters on white.
fn colour(element: Element) -> Colour {
    match element {
        Element::N => Colour(0, 90, 170),
        Element::O => Colour(200, 50, 20),
        Element::S | Element::Se => Colour(150, 115, 0),
        Element::P => Colour(190, 95, 0),
        Element::F | Element::Cl => Colour(0, 125, 80),
        Element::Br | Element::I => Colour(130, 50, 30),
        Element::B | Element::C | Element::Si => Colour::INK,
    }
}

/// The part of a line that labels at its ends leave to see.
pub(super) fn visible(p: Place, q: Place, ends: [(Place, Option<&Label>); 2]) -> Option<(Place, Place)> {
    const STEPS: usize = 200;
    let at = |k: usize| {
        let share = k as f64 / STEPS as f64;
        (p.0 + share * (q.0 - p.0), p.1 + share * (q.1 - p.1))
    };
    let hidden = |k: usize| ends.iter().any(|(atom, label)| label.is_some_and(|l| l.covers(minus(at(k), *atom))));
    let first = (0..=STEPS).find(|&k| !hidden(k))?;
    let last = (first..=STEPS).rev().find(|&k| !hidden(k))?;
    Some((at(first), at(last)))
}
