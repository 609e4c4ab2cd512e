/// An element that heavy atoms can have. Hydrogens aren't atoms of a molecule, but counts on the atoms that
/// they are bonded to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Element {
    /// Boron.
    B,
    /// Carbon.
    C,
    /// Nitrogen.
    N,
    /// Oxygen.
    O,
    /// Fluorine.
    F,
    /// Silicon.
    Si,
    /// Phosphorus.
    P,
    /// Sulphur.
    S,
    /// Chlorine.
    Cl,
    /// Selenium.
    Se,
    /// Bromine.
    Br,
    /// Iodine.
    I,
}

/// The atomic weight of hydrogen in g/mol.
pub(super) const HYDROGEN: f64 = 1.008;

/// The symbols of all chemical elements, followed by the symbols `as` and `te` of aromatic atoms. Many of
/// these elements aren't in [`Element`].
const SYMBOLS: &str = " H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga \
    Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy \
    Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md \
    No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og as te ";

/// Returns `true` if the text is the symbol of an element in SMILES, whether or not the element is in
/// [`Element`].
pub(super) fn is_symbol(text: &str) -> bool {
    SYMBOLS.split_whitespace().any(|symbol| symbol == text)
}

/// The properties of an element: its symbol, its symbol as an aromatic atom, its atomic number, its atomic
/// weight in g/mol, and the number of its outer electrons.
type ElementRow = (&'static str, Option<&'static str>, u8, f64, i8);

/// The properties of the elements, in the order of [`Element::ALL`].
const FACTS: [ElementRow; 12] = [
    ("B", Some("b"), 5, 10.812, 3),
    ("C", Some("c"), 6, 12.011, 4),
    ("N", Some("n"), 7, 14.007, 5),
    ("O", Some("o"), 8, 15.999, 6),
    ("F", None, 9, 18.998, 7),
    ("Si", Some("si"), 14, 28.086, 4),
    ("P", Some("p"), 15, 30.974, 5),
    ("S", Some("s"), 16, 32.067, 6),
    ("Cl", None, 17, 35.453, 7),
    ("Se", Some("se"), 34, 78.96, 6),
    ("Br", None, 35, 79.904, 7),
    ("I", None, 53, 126.904, 7),
];

impl Element {
    /// All supported elements, in the order of their atomic numbers.
    pub const ALL: [Self; 12] = {
        use Element::{B, Br, C, Cl, F, I, N, O, P, S, Se, Si};
        [B, C, N, O, F, Si, P, S, Cl, Se, Br, I]
    };

    fn row(self) -> ElementRow {
        FACTS[self as usize]
    }

    /// Returns the symbol of the element.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        self.row().0
    }

    /// Returns the element's symbol for aromatic atoms in SMILES; `None` if the element can't be aromatic.
    #[must_use]
    pub fn aromatic_symbol(self) -> Option<&'static str> {
        self.row().1
    }

    /// Returns the element with this symbol, and a flag that is `true` if the symbol is that of an aromatic
    /// atom.
    ///
    /// ```
    /// use gfn_molecules::Element;
    /// assert_eq!(Element::from_symbol("Cl"), Some((Element::Cl, false)));
    /// assert_eq!(Element::from_symbol("n"), Some((Element::N, true)));
    /// assert_eq!(Element::from_symbol("Xx"), None);
    /// ```
    #[must_use]
    pub fn from_symbol(symbol: &str) -> Option<(Self, bool)> {
        Self::ALL.into_iter().find_map(|element| {
            let aromatic = element.aromatic_symbol() == Some(symbol);
            (element.symbol() == symbol || aromatic).then_some((element, aromatic))
        })
    }

    /// Returns the atomic number of the element.
    #[must_use]
    pub fn number(self) -> u8 {
        self.row().2
    }

    /// Returns the standard atomic weight of the element in g/mol (natural isotopes), as in RDKit.
    #[must_use]
    pub fn weight(self) -> f64 {
        self.row().3
    }

    /// Returns the number of electrons in the element's outer shell.
    #[must_use]
    pub fn outer_electrons(self) -> i8 {
        self.row().4
    }

    /// Returns `true` if atoms of this element may be written without brackets in SMILES.
    #[must_use]
    pub fn in_organic_subset(self) -> bool {
        !matches!(self, Self::Si | Self::Se)
    }

    /// Returns `true` if this element attracts the electrons of `other` in RDKit's model. This is the case
    /// if it has more outer electrons, or the same number of outer electrons and a smaller atomic number.
    pub(super) fn draws_from(self, other: Self) -> bool {
        let own = self.outer_electrons();
        let others = other.outer_electrons();
        own > others || own == others && self.number() < other.number()
    }
}
