use gfn::{Error, Result};

/// A mapping between tokens and the characters that represent them in text: token `t` is the `t`-th
/// character, counted from 0.
///
/// ```
/// use gfn_gym::sequence::Alphabet;
/// let dna = Alphabet::dna();
/// assert_eq!(dna.encode("TAG")?, [3, 0, 2]);
/// assert_eq!(dna.decode(&[3, 0, 2])?, "TAG");
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alphabet(Vec<char>);

impl Alphabet {
    /// Builds an alphabet of these characters, in this order.
    ///
    /// # Errors
    /// [`Error::Config`] unless there are 1 to 65,535 characters, for a repeated character, and for a comma,
    /// a quotation mark or white space, which can't occur in a table of rewards.
    pub fn new(characters: &str) -> Result<Self> {
        let tokens: Vec<char> = characters.chars().collect();
        let repeated = tokens.iter().enumerate().any(|(i, c)| tokens[..i].contains(c));
        let reserved = tokens.iter().any(|c| matches!(c, ',' | '"') || c.is_whitespace());
        if !(1..=usize::from(u16::MAX)).contains(&tokens.len()) || repeated || reserved {
            return Err(Error::config(
                "the alphabet",
                format!("{characters:?}"),
                "1 to 65,535 different characters, without commas, quotation marks and white space",
            ));
        }
        Ok(Self(tokens))
    }

    /// Returns the alphabet of DNA, `ACGT`.
    #[must_use]
    pub fn dna() -> Self {
        Self(vec!['A', 'C', 'G', 'T'])
    }

    /// Returns the number of tokens of the alphabet.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.0.len()
    }

    /// Returns the tokens of a text.
    ///
    /// # Errors
    /// [`Error::Config`] for a character that isn't in the alphabet.
    pub fn encode(&self, text: &str) -> Result<Vec<u16>> {
        let token = |c: char| {
            let known = self.0.iter().position(|&known| known == c);
            known.map(|token| token as u16).ok_or_else(|| {
                Error::config(
                    "a character of a sequence",
                    format!("{c:?} in {text:?}"),
                    "a character of the alphabet",
                )
            })
        };
        text.chars().map(token).collect()
    }

    /// Returns the text in which each of these tokens is its character.
    ///
    /// # Errors
    /// [`Error::Config`] for a token that the alphabet lacks.
    pub fn decode(&self, tokens: &[u16]) -> Result<String> {
        let character = |&token: &u16| {
            self.0.get(usize::from(token)).ok_or_else(|| {
                Error::config(
                    "a token",
                    format!("{token}, but the alphabet has {} characters", self.0.len()),
                    "a number below the size of the alphabet",
                )
            })
        };
        tokens.iter().map(character).collect()
    }
}
