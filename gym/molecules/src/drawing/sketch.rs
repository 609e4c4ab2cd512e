//! Skeletal formulas.

use gfn_plot::{Canvas, Colour};

use super::label::{Label, visible};
use super::place::{Place, distance, middle, minus, plus, side};
use crate::{Bond, BondOrder, Molecule};

/// The length of a bond in units of the canvas, where there is room.
const UNIT: f64 = 30.0;
/// Around the drawing, in units.
const MARGIN: f64 = 8.0;
/// Between the lines of a bond, in bond lengths.
const SPREAD: f64 = 0.17;
/// Half the width of a wedge, in bond lengths, and how many lines one that goes behind the paper has.
const WEDGE: f64 = 0.12;
const HATCHES: u8 = 6;
/// What a second line in a ring is shorter by at each end.
const SHORT: f64 = 0.14;

impl Molecule {
    /// Its skeletal formula, no larger than `width` by `height` units: carbons are corners and ends of lines, other atoms are
    /// written with their hydrogens and charges; double bonds are those of this Kekule form, and marked centres have wedges. (A double
    /// bond in trans in a ring looks like one in cis.)
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
        let (places, rings) = self.drawn();
        // Down the paper, as canvases count.
        let places: Vec<Place> = places.into_iter().map(|(x, y)| (x, -y)).collect();
        let labels: Vec<_> = (0..places.len()).map(|a| Label::of(self, &places, a)).collect();
        let (mut low, mut high) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
        for (&p, label) in places.iter().zip(&labels) {
            let boxes = label.iter().flat_map(Label::boxes).flat_map(|(a, b)| [plus(a, 1.0, p), plus(b, 1.0, p)]);
            for (x, y) in boxes.chain([p]) {
                low = (low.0.min(x), low.1.min(y));
                high = (high.0.max(x), high.1.max(y));
            }
        }
        let size = minus(high, low);
        let room = |length: f64, needed: f64| (length - 2.0 * MARGIN) / needed.max(1e-9);
        let unit = UNIT.min(room(width, size.0)).min(room(height, size.1)).max(0.0);
        let centre = plus(low, 0.5, size);
        let sketch = Sketch { molecule: self, rings: &rings, places: &places, labels: &labels };
        let on_canvas = |p: Place| plus((width / 2.0, height / 2.0), unit, minus(p, centre));
        let mut canvas = Canvas::new(width, height);
        // Up as in the molecule: places go down the paper here.
        let upright: Vec<Place> = places.iter().map(|&(x, y)| (x, -y)).collect();
        let wedges = self.wedges(&upright).unwrap_or_default();
        for (k, bond) in self.bonds().iter().enumerate() {
            let ends = [bond.a, bond.b].map(|a| (places[a], labels[a].as_ref()));
            if let Some(wedge) = wedges.get(k).copied().flatten() {
                let to = bond.other(wedge.from);
                let ends = [wedge.from, to].map(|a| (places[a], labels[a].as_ref()));
                if let Some((p, q)) = visible(places[wedge.from], places[to], ends) {
                    draw_wedge(&mut canvas, [on_canvas(p), on_canvas(q)], unit, wedge.up);
                }
                continue;
            }
            for (p, q) in sketch.lines(bond) {
                if let Some((p, q)) = visible(p, q, ends) {
                    canvas.line(vec![on_canvas(p), on_canvas(q)], Colour::INK, (0.05 * unit).clamp(0.6, 1.5));
                }
            }
        }
        for (&p, label) in places.iter().zip(&labels) {
            if let Some(label) = label {
                label.write(&mut canvas, on_canvas(p), unit);
            }
        }
        canvas
    }
}

/// A wedge from its tip: filled, or of lines across.
fn draw_wedge(canvas: &mut Canvas, [tip, end]: [Place; 2], unit: f64, up: bool) {
    let length = distance(tip, end).max(1e-9);
    let along = minus(end, tip);
    let across = (-along.1 / length, along.0 / length);
    let corners = |share: f64| {
        let middle = plus(tip, share, along);
        let width = share * WEDGE * unit;
        (plus(middle, width, across), plus(middle, -width, across))
    };
    if up {
        let (left, right) = corners(1.0);
        canvas.area(vec![tip, left, right], Colour::INK);
        return;
    }
    for k in 1..=HATCHES {
        let (left, right) = corners(f64::from(k) / f64::from(HATCHES));
        canvas.line(vec![left, right], Colour::INK, (0.04 * unit).clamp(0.5, 1.2));
    }
}

struct Sketch<'a> {
    molecule: &'a Molecule,
    rings: &'a [Vec<usize>],
    places: &'a [Place],
    labels: &'a [Option<Label>],
}

impl Sketch<'_> {
    /// The lines that a bond is drawn as.
    fn lines(&self, bond: &Bond) -> Vec<(Place, Place)> {
        let (p, q) = (self.places[bond.a], self.places[bond.b]);
        let length = distance(p, q).max(1e-9);
        let along = (minus(q, p).0 / length, minus(q, p).1 / length);
        // To the side that `place::side` has as positive.
        let across = (-along.1, along.0);
        let beside = |by: f64| (plus(p, by, across), plus(q, by, across));
        match bond.order {
            BondOrder::Single => vec![(p, q)],
            BondOrder::Triple => vec![(p, q), beside(SPREAD), beside(-SPREAD)],
            BondOrder::Double => match self.inner_side(bond) {
                None => vec![beside(SPREAD / 2.0), beside(-SPREAD / 2.0)],
                Some(sign) => {
                    let (from, to) = beside(sign * SPREAD);
                    // A label is as good as an end: the line is cut there anyway.
                    let cut = |a: usize| if self.labels[a].is_some() { 0.0 } else { SHORT };
                    vec![(p, q), (plus(from, cut(bond.a), along), plus(to, -cut(bond.b), along))]
                }
            },
        }
    }

    /// On which side of a double bond its second line is: in a ring, or where the neighbours are; `None` for two lines alike.
    fn inner_side(&self, bond: &Bond) -> Option<f64> {
        let (p, q) = (self.places[bond.a], self.places[bond.b]);
        let with_bond = self.rings.iter().filter(|ring| ring.contains(&bond.a) && ring.contains(&bond.b));
        let doubles = |ring: &[usize]| {
            let inside = |bond: &&Bond| ring.contains(&bond.a) && ring.contains(&bond.b);
            self.molecule.bonds().iter().filter(inside).filter(|bond| bond.order == BondOrder::Double).count()
        };
        if let Some(ring) = with_bond.min_by_key(|ring| (std::cmp::Reverse(doubles(ring)), ring.len())) {
            let centre = middle(ring.iter().map(|&a| self.places[a]));
            return Some(side(p, q, centre).signum());
        }
        let ends = [bond.a, bond.b];
        let alone = |a: usize| self.molecule.neighbours(a).len() == 1 || self.molecule.is_straight(a);
        if ends.into_iter().any(alone) {
            return None;
        }
        let others = ends.into_iter().flat_map(|a| self.molecule.neighbours(a)).map(|(b, _)| b);
        let sum: f64 = others.filter(|b| !ends.contains(b)).map(|b| side(p, q, self.places[b]).signum()).sum();
        Some(if sum < 0.0 { -1.0 } else { 1.0 })
    }
}
