//! Drawings of molecules as skeletal formulas.

use gfn_plot::{Canvas, Colour, TextAnchor};

use super::place::{Place, distance, minus, plus};
use super::wedges::Wedge;
use crate::{BondOrder, Element, Molecule};

/// The length of a bond in canvas units. It is smaller if the molecule wouldn't fit the canvas otherwise.
const UNIT: f64 = 30.0;
/// The margin around the drawing, in canvas units.
const MARGIN: f64 = 8.0;
/// The font size of atom labels, in bond lengths.
const LETTERS: f64 = 0.5;
/// The distance between neighbouring lines of a double or triple bond, in bond lengths.
const SPREAD: f64 = 0.15;
/// Half the width of a wedge at its broad end, in bond lengths.
const WEDGE: f64 = 0.12;
/// The number of lines in a hatched wedge, which points behind the paper.
const HATCHES: u8 = 6;

impl Molecule {
    /// Draws the skeletal formula of the molecule. The drawing has at most `width` by `height` canvas
    /// units. Carbons are corners and ends of lines; other atoms are written with their hydrogens and
    /// charges. Double bonds are those of the current Kekule form, and marked centres have wedges. (In a
    /// ring, a trans double bond looks like a cis double bond.)
    ///
    /// ```
    /// use gfn_molecules::Molecule;
    /// # let folder = std::env::temp_dir().join("gfn-doc-formula");
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// let caffeine = Molecule::from_smiles("CN1C=NC2=C1C(=O)N(C(=O)N2C)C").map_err(gfn::Error::from)?;
    /// caffeine.drawing(200.0, 200.0).write(folder.join("caffeine.svg"))?;
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), gfn::Error>(())
    /// ```
    #[must_use]
    pub fn drawing(&self, width: f64, height: f64) -> Canvas {
        let upward = self.coordinates();
        let wedges = self.wedges(&upward).unwrap_or_default();
        // The y-axis of a canvas points downwards.
        let places: Vec<Place> = upward.into_iter().map(|(x, y)| (x, -y)).collect();
        let labels: Vec<Option<Label>> = (0..places.len()).map(|a| Label::new(self, &places, a)).collect();
        let corners = labels.iter().flatten().flat_map(|label| [label.low, label.high]);
        let mut low = (f64::INFINITY, f64::INFINITY);
        let mut high = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for (x, y) in corners.chain(places.iter().copied()) {
            low = (low.0.min(x), low.1.min(y));
            high = (high.0.max(x), high.1.max(y));
        }
        let size = minus(high, low);
        let room = |length: f64, needed: f64| (length - 2.0 * MARGIN) / needed.max(1e-9);
        let unit = UNIT.min(room(width, size.0)).min(room(height, size.1)).max(0.0);
        let middle = plus(low, 0.5, size);
        let on_canvas = |p: Place| plus((width / 2.0, height / 2.0), unit, minus(p, middle));
        let mut canvas = Canvas::new(width, height);
        for (k, bond) in self.bonds().iter().enumerate() {
            if let Some(wedge) = wedges.get(k).copied().flatten() {
                let ends = [wedge.from, bond.other_end(wedge.from)].map(|a| on_canvas(places[a]));
                draw_wedge(&mut canvas, wedge, ends, unit);
                continue;
            }
            let p = places[bond.a];
            let q = places[bond.b];
            let length = distance(p, q).max(1e-9);
            let across = ((p.1 - q.1) / length, (q.0 - p.0) / length);
            let lines: &[f64] = match bond.order {
                BondOrder::Single => &[0.0],
                BondOrder::Double => &[-0.5, 0.5],
                BondOrder::Triple => &[-1.0, 0.0, 1.0],
            };
            for by in lines {
                let ends = [p, q].map(|end| on_canvas(plus(end, by * SPREAD, across)));
                canvas.line(ends.to_vec(), Colour::INK, (0.05 * unit).clamp(0.6, 1.5));
            }
        }
        for Label { text, low, high } in labels.iter().flatten() {
            // A white box hides the ends of bonds behind the letters.
            let [(left, top), (right, bottom)] = [*low, *high].map(on_canvas);
            canvas.area(vec![(left, top), (right, top), (right, bottom), (left, bottom)], Colour::WHITE);
            canvas.text(
                (left, f64::midpoint(top, bottom)),
                text,
                LETTERS * unit,
                Colour::INK,
                TextAnchor::Left,
            );
        }
        canvas
    }
}

/// The label at an atom: its text, and two opposite corners of its box. Coordinates are in bond lengths,
/// with x to the right and y downwards.
struct Label {
    text: String,
    low: Place,
    high: Place,
}

impl Label {
    /// Returns the label of an atom. In molecules of more than two heavy atoms, returns `None` for an
    /// uncharged carbon, because it is drawn only as a corner or an end of lines.
    fn new(molecule: &Molecule, places: &[Place], a: usize) -> Option<Self> {
        let atom = molecule.atoms()[a];
        let is_corner = molecule.neighbours(a).len() > 0 && molecule.atoms().len() > 2;
        if atom.element == Element::C && atom.charge == 0 && is_corner {
            return None;
        }
        let symbol = atom.element.symbol();
        let hydrogens = match atom.hydrogens {
            0 => String::new(),
            1 => "H".to_owned(),
            n => format!("H{}", char::from_u32(0x2080 + u32::from(n)).unwrap_or('?')),
        };
        let sign = if atom.charge > 0 { '\u{207a}' } else { '\u{207b}' };
        let charge = match atom.charge.unsigned_abs() {
            0 => String::new(),
            1 => sign.to_string(),
            n => format!("{n}{sign}"),
        };
        // The hydrogens are written to the left of the symbol if the bonds point to the right. Otherwise,
        // they are written to the right of the symbol.
        let to_the_right: f64 = molecule.neighbours(a).map(|(b, _)| places[b].0 - places[a].0).sum();
        let (before, after) =
            if to_the_right > 1e-6 { (hydrogens.as_str(), "") } else { ("", hydrogens.as_str()) };
        let width = |text: &str| Canvas::text_width(text, 100.0) * LETTERS / 100.0;
        let (x, y) = places[a];
        let left = x - width(before) - width(symbol) / 2.0;
        let text = format!("{before}{symbol}{after}{charge}");
        let half = 0.45 * LETTERS;
        Some(Self { low: (left, y - half), high: (left + width(&text), y + half), text })
    }
}

/// Draws a wedge from its tip to its broad end. The wedge is filled if it points towards the reader, and
/// hatched if it points behind the paper.
fn draw_wedge(canvas: &mut Canvas, wedge: Wedge, [tip, end]: [Place; 2], unit: f64) {
    let along = minus(end, tip);
    let length = distance(tip, end).max(1e-9);
    let across = (-along.1 / length, along.0 / length);
    let corners = |share: f64| {
        let middle = plus(tip, share, along);
        let width = share * WEDGE * unit;
        [plus(middle, width, across), plus(middle, -width, across)]
    };
    if wedge.up {
        let [left, right] = corners(1.0);
        canvas.area(vec![tip, left, right], Colour::INK);
        return;
    }
    for k in 1..=HATCHES {
        let ends = corners(f64::from(k) / f64::from(HATCHES));
        canvas.line(ends.to_vec(), Colour::INK, (0.04 * unit).clamp(0.5, 1.2));
    }
}
