//! Libraries of fragments: what the standard one has, and what is refused.

use gfn::Error;
use gfn::graph::{GraphKind, GraphState};
use gfn_gym::fragments::{Fragment, FragmentError, FragmentLibrary, Fragments};

fn library(text: &str) -> FragmentLibrary {
    FragmentLibrary::parse(text).unwrap()
}

#[test]
fn the_standard_library_is_what_it_says() {
    let library = FragmentLibrary::standard().unwrap();
    let symmetries = |smiles: &str| {
        let fragment = library.fragments().iter().find(|fragment| fragment.smiles() == smiles).unwrap();
        fragment.n_symmetries()
    };
    assert!((20..=40).contains(&library.fragments().len()));
    assert_eq!(
        [symmetries("c1ccccc1"), symmetries("n1ccccc1"), symmetries("N1CCNCC1"), symmetries("C=C")],
        [12, 2, 2, 2]
    );
    assert_eq!([symmetries("C1CCCCC1"), symmetries("C(F)(F)F"), symmetries("O=CN")], [2, 1, 1]);
}

#[test]
fn libraries_that_make_no_sense_are_refused_with_the_line() {
    let cases = [
        ("C 0\n\nCC", 3, "isn't two words"),
        ("C 0\nN 0 1", 2, "isn't two words"),
        ("# rings\nc1ccccc1 0,x", 2, "\"x\" isn't the number of an atom"),
        ("C1CC 0", 1, "C1CC"),
        ("CN(=O)=O 0", 1, "atom 1 (N, charge 0) has valence 5"),
        ("C 0\nCl 1", 2, "no stem 1"),
        ("Cl 0,0", 1, "listed 2 times and has 1 hydrogens"),
        ("c1cccnc1 4", 1, "has 0 hydrogens"),
        ("OCC 1,2\nC 0\nCCO 1,0", 3, "that of line 1"),
    ];
    for (text, expected, problem) in cases {
        let error = FragmentLibrary::parse(text).unwrap_err();
        let Error::Parse { line, .. } = error else { panic!("{error}") };
        assert_eq!(line, expected, "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    // Written as it is read.
    let all = FragmentLibrary::standard().unwrap();
    let text: Vec<String> = all.fragments().iter().map(Fragment::to_string).collect();
    assert_eq!(library(&text.join("\n")), all);
    // The same molecule with other stems is another fragment.
    assert_eq!(library("OCC 1,2\nCCO 1").fragments().len(), 2);
    let message = FragmentLibrary::parse("# nothing\n").unwrap_err().to_string();
    assert!(message.contains("a library of fragments is 0"), "{message}");
    let twice = vec![Fragment::new("CO", &[0]).unwrap(), Fragment::new("OC", &[1]).unwrap()];
    assert!(FragmentLibrary::new(twice).unwrap_err().to_string().contains("fragments 0 and 1 the same"));
    assert!(matches!(Fragment::new("C", &[]), Err(FragmentError::NoStem { .. })));
    // Six methyl groups on sulphur can be permuted; six tert-butyl groups' own, each in six ways on top.
    assert_eq!(Fragment::new("S(C)(C)(C)(C)(C)C", &[1, 2, 3, 4, 5, 6]).unwrap().n_symmetries(), 720);
    let butyls = format!("S{}C(C)(C)C", "(C(C)(C)C)".repeat(5));
    let ends: Vec<usize> = (0..6).flat_map(|k| (2..5).map(move |a| 4 * k + a)).collect();
    let error = Fragment::new(&butyls, &ends).unwrap_err();
    assert!(matches!(error, FragmentError::TooMany { what: "symmetries", .. }), "{error}");
    // Where they aren't stems, they don't count.
    assert_eq!(Fragment::new(&butyls, &[2]).unwrap().n_symmetries(), 1);
    assert!(library("C 0").fragments()[0].is_same(&Fragment::new("C", &[0]).unwrap()));
    for n in [0, 1_001] {
        let message = Fragments::new(&library("C 0"), n).unwrap_err().to_string();
        assert!(message.contains(&format!("max_fragments is {n}")), "{message}");
    }
    // A graph of another environment is no tree.
    let foreign = GraphState::with_nodes(GraphKind::Undirected, 2);
    assert!(library("C 0").molecule(&foreign).unwrap_err().to_string().contains("a tree of fragments"));
}
