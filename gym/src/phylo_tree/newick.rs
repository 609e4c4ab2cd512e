//! Conversion of Newick text to states of trees.

use gfn::{Error, Result};

use super::PhyloTree;

/// A token of a Newick text: a parenthesis, a comma, a semicolon, or a word.
enum Token<'a> {
    Open,
    Close,
    Comma,
    End,
    Word(&'a str),
}

/// Splits a text into tokens. White space around tokens is dropped.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let length = rest.find(['(', ')', ',', ';']).unwrap_or(rest.len());
        out.push(match first {
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            ';' => Token::End,
            _ => Token::Word(rest[..length].trim()),
        });
        rest = rest[length.max(1)..].trim_start();
    }
    out
}

impl PhyloTree {
    /// Reads a single tree of all species from Newick text, in which species are numbers, and returns its
    /// state. Branch lengths and names of inner nodes are skipped.
    ///
    /// ```
    /// use gfn_gym::phylo_tree::PhyloTree;
    /// let rules = PhyloTree::new(4)?;
    /// let tree = rules.read_newick("((3:0.5,1:1e-2)inner:2,(2,0));")?;
    /// assert_eq!(rules.newick(&tree), "((0,2),(1,3));");
    /// assert!(rules.read_newick("((0,1),2);").is_err());
    /// # Ok::<(), gfn::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] for a text that isn't a single rooted binary tree of all species, each once.
    pub fn read_newick(&self, text: &str) -> Result<Vec<u16>> {
        let wrong = |problem: String| {
            Error::config(
                "a tree",
                problem,
                "one rooted binary tree of all species, such as `((0,2),(1,3));` for four species",
            )
        };
        let mut row = vec![0; self.entries()];
        // `open` is a stack of lists of the trees read so far: the trees outside all parentheses, then the
        // trees inside each open parenthesis. A tree is stored as its smallest species and the index of its
        // root's entry in the state.
        let mut open = vec![Vec::new()];
        let mut seen = vec![false; self.n()];
        let mut follows_tree = false;
        let mut has_ended = false;
        for token in tokens(text) {
            match token {
                _ if has_ended => return Err(wrong(format!("more than one tree: {text:?}"))),
                Token::Open if !follows_tree => open.push(Vec::new()),
                Token::Comma if follows_tree => follows_tree = false,
                Token::Close if follows_tree && open.len() > 1 => {
                    let trees = open.pop().unwrap_or_default();
                    let [one, other] = trees[..] else {
                        return Err(wrong(format!(
                            "a tree with an inner node that joins {} trees",
                            trees.len()
                        )));
                    };
                    let ((low, _), (name, _)) = if one < other { (one, other) } else { (other, one) };
                    [one.1, other.1].into_iter().for_each(|root: usize| row[root] = name as u16);
                    for outer in open.last_mut().into_iter() {
                        outer.push((low, self.n() - 1 + name));
                    }
                }
                Token::End => has_ended = true,
                // A word after a tree is a branch length or the name of an inner node.
                Token::Word(_) if follows_tree => {}
                Token::Word(word) => {
                    let number = word.split(':').next().unwrap_or_default().trim();
                    let species = number.parse().ok().filter(|&species: &usize| species < self.n());
                    let Some(species) = species else {
                        return Err(wrong(format!("a tree with the species {number:?}")));
                    };
                    if std::mem::replace(&mut seen[species], true) {
                        return Err(wrong(format!("a tree that names species {species} twice")));
                    }
                    for outer in open.last_mut().into_iter() {
                        outer.push((species, species));
                    }
                    follows_tree = true;
                }
                Token::Open | Token::Comma | Token::Close => return Err(wrong(format!("{text:?}"))),
            }
        }
        match (open.len(), open[0].len(), seen.iter().position(|seen| !seen)) {
            (1, 1, None) if follows_tree => Ok(row),
            (1, _, Some(species)) => Err(wrong(format!("a tree without species {species}"))),
            _ => Err(wrong(format!("{text:?}"))),
        }
    }
}
