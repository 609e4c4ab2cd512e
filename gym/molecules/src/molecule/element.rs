/// An element that a molecule can be made of, hydrogen apart (hydrogens are counts on the atoms that carry them).
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

/// Atomic weight of hydrogen.
pub(super) const HYDROGEN: f64 = 1.008;

/// The symbols of all elements.
const SYMBOLS: &str = " H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y \
    Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl \
    Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og as te ";

/// `true` if an element, known here or not, has this symbol in a SMILES.
pub(super) fn is_symbol(text: &str) -> bool {
    SYMBOLS.split_whitespace().any(|symbol| symbol == text)
}

/// What is known of an element.
struct Facts {
    symbol: &'static str,
    /// As an aromatic atom.
    lower: Option<&'static str>,
    number: u8,
    weight: f64,
    outer: i8,
}

impl Element {
    /// All of them, by atomic number.
    pub const ALL: [Self; 12] = [
        Self::B,
        Self::C,
        Self::N,
        Self::O,
        Self::F,
        Self::Si,
        Self::P,
        Self::S,
        Self::Cl,
        Self::Se,
        Self::Br,
        Self::I,
    ];

    fn facts(self) -> Facts {
        let (symbol, lower, number, weight, outer) = match self {
            Self::B => ("B", Some("b"), 5, 10.812, 3),
            Self::C => ("C", Some("c"), 6, 12.011, 4),
            Self::N => ("N", Some("n"), 7, 14.007, 5),
            Self::O => ("O", Some("o"), 8, 15.999, 6),
            Self::F => ("F", None, 9, 18.998, 7),
            Self::Si => ("Si", Some("si"), 14, 28.086, 4),
            Self::P => ("P", Some("p"), 15, 30.974, 5),
            Self::S => ("S", Some("s"), 16, 32.067, 6),
            Self::Cl => ("Cl", None, 17, 35.453, 7),
            Self::Se => ("Se", Some("se"), 34, 78.96, 6),
            Self::Br => ("Br", None, 35, 79.904, 7),
            Self::I => ("I", None, 53, 126.904, 7),
        };
        Facts { symbol, lower, number, weight, outer }
    }

    /// Its symbol.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        self.facts().symbol
    }

    /// Its symbol as an aromatic atom of a SMILES; `None` for those that can't be aromatic.
    #[must_use]
    pub fn aromatic_symbol(self) -> Option<&'static str> {
        self.facts().lower
    }

    /// The element of a symbol, and whether it was written as an aromatic one.
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
            let facts = element.facts();
            let aromatic = facts.lower == Some(symbol);
            (facts.symbol == symbol || aromatic).then_some((element, aromatic))
        })
    }

    /// Its atomic number.
    #[must_use]
    pub fn number(self) -> u8 {
        self.facts().number
    }

    /// Its standard atomic weight (natural isotopes), as RDKit has it.
    #[must_use]
    pub fn weight(self) -> f64 {
        self.facts().weight
    }

    /// Electrons of its outer shell.
    #[must_use]
    pub fn outer_electrons(self) -> i8 {
        self.facts().outer
    }

    /// `true` if a SMILES can have it without brackets.
    #[must_use]
    pub fn in_organic_subset(self) -> bool {
        !matches!(self, Self::Si | Self::Se)
    }

    /// `true` if it draws electrons from `other` in RDKit's model: more outer electrons, or as many in a smaller atom.
    pub(super) fn draws_from(self, other: Self) -> bool {
        let (own, others) = (self.outer_electrons(), other.outer_electrons());
        own > others || own == others && self.number() < other.number()
    }
}
